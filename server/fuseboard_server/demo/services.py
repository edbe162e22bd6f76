"""What the demo's services answer when they are well: small, deterministic, validated."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from datetime import date

CITIES = {
    "Lisbon": ("LIS", 38.72, -9.14),
    "Osaka": ("KIX", 34.69, 135.50),
    "Toronto": ("YYZ", 43.65, -79.38),
    "Nairobi": ("NBO", -1.29, 36.82),
    "Lima": ("LIM", -12.05, -77.04),
    "Oslo": ("OSL", 59.91, 10.75),
}
CURRENCIES = {"EUR": 1.0, "USD": 1.09, "JPY": 163.2, "CAD": 1.48, "KES": 141.0, "PEN": 4.05}
SKIES = ("clear", "cloudy", "rain", "wind", "fog")

Answer = dict[str, object]


class InvalidRequestError(ValueError):
    """The request is wrong; answered with 422."""


def answer(tool: str, arguments: Mapping[str, str]) -> Answer:
    """Return the healthy answer of one service.

    Raises:
        InvalidRequestError: If an argument is missing or wrong.
    """
    return SERVICES[tool](arguments)


def _number(*parts: str) -> int:
    """Return a stable number for some words, so that equal questions get equal answers."""
    return zlib.crc32("|".join(parts).encode())


def _require(arguments: Mapping[str, str], name: str) -> str:
    value = arguments.get(name, "")
    if not value:
        raise InvalidRequestError(f"{name}: field required")
    return value


def _city(arguments: Mapping[str, str], name: str = "city") -> str:
    value = _require(arguments, name)
    if value not in CITIES:
        raise InvalidRequestError(f"{name}: {value!r} is not a known city")
    return value


def _day(arguments: Mapping[str, str]) -> str:
    value = _require(arguments, "day")
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError as error:
        raise InvalidRequestError(f"day: {value!r} is not a date") from error


def _web_search(arguments: Mapping[str, str]) -> Answer:
    query = _require(arguments, "query")
    hits = [{"title": f"{query} ({n})", "rank": n} for n in range(1, 2 + _number(query) % 4)]
    return {"hits": hits}


def _weather(arguments: Mapping[str, str]) -> Answer:
    city, day = _city(arguments), _day(arguments)
    number = _number(city, day)
    return {"city": city, "celsius": number % 35 - 3, "sky": SKIES[number % len(SKIES)]}


def _flights(arguments: Mapping[str, str]) -> Answer:
    origin, city, day = _city(arguments, "origin"), _city(arguments), _day(arguments)
    number = _number(origin, city, day)
    return {
        "offers": [
            {"flight": f"FB{number % 900 + n}", "price": 80 + (number >> n) % 900}
            for n in range(1, 4)
        ]
    }


def _hotels(arguments: Mapping[str, str]) -> Answer:
    city, nights = _city(arguments), _require(arguments, "nights")
    if not nights.isdigit() or not 1 <= int(nights) <= 30:
        raise InvalidRequestError(f"nights: {nights!r} must be a whole number from 1 to 30")
    return {
        "hotels": [
            {"name": f"{city} {kind}", "price": 40 + _number(city, kind) % 200}
            for kind in ("Central", "Garden", "Station")
        ]
    }


def _payment(arguments: Mapping[str, str]) -> Answer:
    amount, key = _require(arguments, "amount"), _require(arguments, "idempotency_key")
    return {"receipt": f"R{_number(key):08x}", "amount": float(amount)}


def _exchange_rate(arguments: Mapping[str, str]) -> Answer:
    source, target = _require(arguments, "source"), _require(arguments, "target")
    for name, code in (("source", source), ("target", target)):
        if code not in CURRENCIES:
            raise InvalidRequestError(f"{name}: {code!r} is not an ISO 4217 currency code")
    return {"rate": round(CURRENCIES[target] / CURRENCIES[source], 4)}


def _maps(arguments: Mapping[str, str]) -> Answer:
    code, latitude, longitude = CITIES[_city(arguments)]
    return {"airport": code, "latitude": latitude, "longitude": longitude}


def _knowledge_base(arguments: Mapping[str, str]) -> Answer:
    city = _city(arguments)
    return {"passages": [f"{city} is best seen on foot.", f"Museums in {city} close on Mondays."]}


SERVICES: Mapping[str, Callable[[Mapping[str, str]], Answer]] = {
    "web_search": _web_search,
    "weather": _weather,
    "flights": _flights,
    "hotels": _hotels,
    "payment": _payment,
    "exchange_rate": _exchange_rate,
    "maps": _maps,
    "knowledge_base": _knowledge_base,
}
