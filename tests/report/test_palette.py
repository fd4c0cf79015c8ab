"""The colours of trust, as people see them who lack one kind of cones."""

from __future__ import annotations

import re

import numpy as np
import pytest

from judgesense.reporting import palette

# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
SEEN = {
    "usual": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.119192, 0.9503041],
    ]
)
TRUST = {"use": "blue", "care": "amber", "unknown": "plum", "avoid": "orange"}


def properties(text):
    return dict(re.findall(r"--([\w-]+): (#[0-9a-fA-F]{6})", text))


SETS = {
    "figures": palette.COLOURS,
    "badge": palette.BADGE,
    **{
        name: {trust: properties(text)[colour] for trust, colour in TRUST.items()}
        for name, text in (("light", palette.LIGHT), ("dark", palette.DARK))
    },
}


def linear(colour):
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(colour, how):
    seen = np.clip(np.array(how) @ linear(colour), 0, 1)
    x, y, z = np.cbrt(TO_XYZ @ seen / [0.95047, 1.0, 1.08883])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("how", SEEN)
@pytest.mark.parametrize("name", SETS)
def test_no_two_values_of_trust_look_alike(name, how) -> None:
    seen = {trust: lab(SETS[name][trust], SEEN[how]) for trust in TRUST}
    near = {
        (one, two): float(np.linalg.norm(seen[one] - seen[two]))
        for one in TRUST
        for two in TRUST
        if one < two
    }
    assert min(near.values()) >= 10, near


def test_each_value_of_trust_has_its_own_mark_shape_and_terminal_colour() -> None:
    for what in (palette.MARKS, palette.SHAPES, palette.STYLES):
        assert len({what[trust] for trust in TRUST}) == len(TRUST)


@pytest.mark.parametrize("text", [palette.LIGHT, palette.DARK])
def test_text_reads_on_its_ground(text) -> None:
    colours = properties(text)
    light = {name: 0.05 + float(TO_XYZ[1] @ linear(colour)) for name, colour in colours.items()}
    for name in ("ink", "soft", *TRUST.values()):
        for ground in ("paper", "page"):
            low, high = sorted((light[name], light[ground]))
            assert high / low >= 4.5, (name, ground)
