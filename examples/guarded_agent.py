"""A tool loop with all its guards, offline: a scripted model, a service that fails.

It shows a session with a budget, a cache, a fallback, an error packet and a breaker, and what each
leaves on record. Run it with ``python examples/guarded_agent.py``; no server is needed.
"""

import json
from collections.abc import Iterator

import fuseboard
from fuseboard import Breaker, Budget, Cache, Fallback, Policy, Repeats, Retry
from fuseboard.adapters.openai_tools import OpenAITools
from fuseboard.testing import CapturedCalls, capture

SERVICE: Iterator[str | Exception] = iter(
    ["clear", ConnectionResetError("reset"), "rain", *[TimeoutError()] * 9]
)
"""What the weather service comes to, one attempt after the other."""


@fuseboard.tool(
    policy=Policy(
        retry=Retry(attempts=2, wait_initial=0.01),
        breaker=Breaker(minimum_throughput=6),
        cache=Cache(ttl=300),
        timeout=5,
        budget=20,
        fallback=Fallback(value={"sky": "unknown", "note": "the service is away"}),
        effects="none",
    ),
    upstream="weather.example",
)
def weather(city: str) -> dict[str, str]:
    """Tell the weather in a city."""
    answer = next(SERVICE)
    if isinstance(answer, Exception):
        raise answer
    return {"city": city, "sky": answer}


@fuseboard.tool(on_error="packet")
def book(city: str, nights: int) -> str:
    """Book a hotel; `effects` is left unsafe, so no booking is made twice."""
    if nights > 14:
        raise PermissionError("the account may book 14 nights at most")
    return f"booked {nights} nights in {city}"


TOOLS = OpenAITools([weather, book])
PLAN = [
    ("weather", {"city": "Lisbon"}),
    ("weather", {"city": "Lisbon"}),  # from the cache
    ("weather", {"city": "Oslo"}),  # at the second attempt
    ("book", {"town": "Oslo"}),  # wrong arguments: the packet says which
    ("book", {"city": "Oslo", "nights": 30}),  # not allowed
    ("weather", {"city": "Lima"}),  # the service is away: the fallback serves
    ("weather", {"city": "Bergen"}),  # the breaker opens within this call
    ("weather", {"city": "Quito"}),  # not asked any more
    ("weather", {"city": "Accra"}),
]


def model() -> Iterator[dict[str, object]]:
    """Play a model that asks for one tool after the other; put your own in its place."""
    for number, (name, arguments) in enumerate(PLAN):
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call-{number}", "type": "function", "function": function}
        yield {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]}


def run() -> list[str]:
    """Go through the conversation; return what the model was told."""
    told = []
    with fuseboard.session(
        "conversation-42",
        agent="trip-planner",
        budget=Budget(retries=5, requests=50),
        repeats=Repeats(limit=3, action="reject"),
        timeout=60,
    ) as session:
        for answer in model():
            with session.step(timeout=15):
                told += [str(reply["content"]) for reply in TOOLS.run(answer)]
    return told


def report(calls: CapturedCalls) -> None:
    """Print what is on record, one line per call."""
    for call in calls:
        print(
            f"{call.tool:8} {call.outcome:9} attempts={len(call.attempts)} decided={call.layer}"
            f" class={call.error_class or '-'}"
        )
    print("breakers:", {status.name: str(status.state) for status in fuseboard.breakers()})


if __name__ == "__main__":
    with capture() as captured:  # in an agent of yours: fuseboard.init(service="trip-planner")
        for words in run():
            print(words)
        report(captured)
