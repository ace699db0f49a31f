# SPDX-License-Identifier: Apache-2.0
"""A network of one's own, for docs/pytorch.md: a residual block, attention over its pixels, a linear head."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(x + self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))


class MyNetwork(nn.Module):
    def __init__(self, channels=16, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, channels, 3, 2, 1), nn.BatchNorm2d(channels), nn.ReLU())
        self.block = Block(channels)
        self.pool = nn.MaxPool2d(2)
        self.attention = nn.MultiheadAttention(channels, 4, batch_first=True)
        self.norm = nn.LayerNorm(channels)
        self.head = nn.Linear(channels, classes)

    def forward(self, image, temperature=1.0):
        x = self.pool(self.block(self.stem(image)))
        x = x.flatten(2).transpose(1, 2)  # pixels as a sequence
        attended, _ = self.attention(x, x, x, need_weights=False)
        x = self.norm(x + attended)
        return self.head(x.mean(dim=1)) / temperature


def make_model():
    torch.manual_seed(0)
    return MyNetwork()
