#!/usr/bin/python3
"""Trains the digits network and writes everything the example needs beside this script.

A small CNN (two convolutions, a residual add, pooling, a dense layer, softmax) on the handwritten digits that come with
scikit-learn (8 x 8 grey values, 1797 of them). Debian packages: python3-torch python3-sklearn python3-numpy.

    digits.onnx     the network, batch of one
    images.npy      held-out images, N x 1 x 8 x 8, float32 in [0, 1]
    labels.npy      what they show, N, int64
    expected.npy    the class probabilities that the training framework gives, N x 10, float32
"""
import pathlib

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent


class Digits(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        self.body = nn.Conv2d(channels, channels, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(channels * 4 * 4, 10)

    def forward(self, image):
        x = torch.relu(self.stem(image))
        x = torch.relu(self.body(x) + x)
        x = torch.flatten(self.pool(x), 1)
        return torch.softmax(self.head(x), dim=1)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    digits = load_digits()
    images = torch.tensor(digits.images / 16.0, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels))
    held_out, train = order[:360], order[360:]

    model = Digits()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    for _ in range(40):
        for batch in train[torch.randperm(len(train))].split(32):
            loss = nn.functional.nll_loss(torch.log(model(images[batch]) + 1e-9), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    model.eval()
    with torch.no_grad():
        expected = model(images[held_out])
    accuracy = (expected.argmax(1) == labels[held_out]).float().mean().item()
    print(f"held-out accuracy {100 * accuracy:.2f} % of {len(held_out)} images")
    torch.onnx.export(model, images[:1], HERE / "digits.onnx", opset_version=13,
                      input_names=["image"], output_names=["probabilities"])
    np.save(HERE / "images.npy", images[held_out].numpy())
    np.save(HERE / "labels.npy", labels[held_out].numpy())
    np.save(HERE / "expected.npy", expected.numpy())


if __name__ == "__main__":
    main()
