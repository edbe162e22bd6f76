"""Our random numbers are our own, and no forked child repeats its parent's."""

from __future__ import annotations

import os
import random

from fuseboard.randomness import RANDOM
from fuseboard.runtime import Runtime


def test_a_seeded_application_does_not_march_in_step() -> None:
    runtime = Runtime()
    drawn = set()
    for _ in range(20):
        random.seed(7)
        drawn.add(runtime.uniform(0.0, 1.0))
    assert len(drawn) == 20


def test_the_applications_numbers_stay_as_they_were() -> None:
    random.seed(7)
    expected = random.random()
    random.seed(7)
    Runtime().uniform(0.0, 1.0)
    RANDOM.getrandbits(64)
    assert random.random() == expected


def test_a_forked_child_draws_other_numbers() -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, RANDOM.getrandbits(64).to_bytes(8, "big"))
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    theirs = int.from_bytes(os.read(reading, 8), "big")
    os.close(reading)
    assert theirs != RANDOM.getrandbits(64)
