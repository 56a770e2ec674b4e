BxJØÝ¿AU^½q
À