"""A tool that is watched and guarded; its first attempt fails, so the board shows a retry."""

import random

import fuseboard
from fuseboard import Breaker, Policy, Retry

fuseboard.init(service="trip-planner", region="us-east")
chance = random.Random(3)


@fuseboard.tool(policy=Policy(retry=Retry(), breaker=Breaker(), timeout=5, effects="none"))
def weather(city: str) -> str:
    """Tell the weather in a city; put your own call in the place of these lines."""
    if chance.random() < 0.3:
        raise ConnectionRefusedError("the weather service is away")
    return f"clear in {city}"


print([weather(city) for city in ("Lisbon", "Oslo", "Lima")])
