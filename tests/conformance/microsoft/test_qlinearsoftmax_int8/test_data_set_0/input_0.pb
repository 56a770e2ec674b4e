BxJ2£_
¦gœFrMŸf7®rø0y¨Xå