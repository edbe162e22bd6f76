"""A tool that is watched and guarded; ``WEATHER_URL`` is any JSON service over HTTP."""

import os

import httpx

import fuseboard
from fuseboard import Breaker, Policy, Retry

fuseboard.init(service="trip-planner", region="us-east")


@fuseboard.tool(policy=Policy(retry=Retry(), breaker=Breaker(), timeout=5, effects="none"))
def weather(city: str) -> dict[str, object]:
    """Tell the weather in a city."""
    response = httpx.get(os.environ["WEATHER_URL"], params={"city": city})
    response.raise_for_status()
    return dict(response.json())


if __name__ == "__main__":
    print(weather("Lisbon"))
