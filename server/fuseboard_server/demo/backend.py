"""The process behind the demo's HTTP tools: one application, regions as prefixes.

A service that the scenario lets refuse connections gets a port of its own, so that the refusal
is a real one: nobody listens.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from fuseboard_server.demo.plan import Plan
from fuseboard_server.demo.scenario import HTTP_TOOLS, REGIONS, Fault, Scenario
from fuseboard_server.demo.services import Answer, InvalidRequestError, answer

HOST = "127.0.0.1"
GATE_INTERVAL = 0.05
"""Seconds between looks at whether a service should refuse connections."""


class Backend:
    """Answers the demo's requests as the scenario wants at that moment."""

    def __init__(self, plan: Plan, scenario: Scenario) -> None:
        self.plan = plan
        self.scenario = scenario
        self._rngs = {
            (tool, region): plan.rng("backend", tool, region)
            for tool in HTTP_TOOLS
            for region in REGIONS
        }

    def app(self) -> Starlette:
        """Return the application."""
        return Starlette(routes=[Route("/{region}/{tool}", self.respond, methods=["GET", "POST"])])

    def now(self) -> float:
        """Return the scenario time."""
        return self.scenario.position(self.plan.elapsed())

    async def respond(self, request: Request) -> Response:
        """Answer one request, with the faults that hit it."""
        tool, region = request.path_params["tool"], request.path_params["region"]
        rng = self._rngs.get((tool, region))
        if rng is None:
            return _problem(404, "not_found", f"no service {tool!r} in {region!r}")
        at = self.now()
        hits = [f for f in self.scenario.active(tool, region, at) if rng.random() < f.ratio]
        delay = sum(f.latency(at) for f in hits if f.kind == "latency") * rng.uniform(0.8, 1.2)
        await asyncio.sleep(self.plan.real(delay))
        arguments = dict(request.query_params)
        if request.method == "POST":
            arguments = await request.json()
        try:
            healthy = answer(tool, arguments)
        except InvalidRequestError as error:
            return _problem(422, "invalid_arguments", str(error))
        for fault in hits:
            if fault.kind in RESPONSES:
                return RESPONSES[fault.kind](fault, healthy, self.plan)
        return JSONResponse(healthy)

    def refuses(self, tool: str, region: str) -> bool:
        """Tell whether a service should refuse connections now."""
        active = self.scenario.active(tool, region, self.now())
        return any(fault.kind == "refuse" for fault in active)


def _problem(status: int, code: str, message: str, wait: float | None = None) -> Response:
    headers = {} if wait is None else {"Retry-After": f"{wait:.3f}"}
    body = {"error": {"code": code, "message": message}}
    return JSONResponse(body, status_code=status, headers=headers)


def _status(fault: Fault, _: Answer, plan: Plan) -> Response:
    wait = None if fault.retry_after is None else plan.real(fault.retry_after)
    return _problem(fault.status, fault.code or "unavailable", "as the scenario wants it", wait)


def _cut(_fault: Fault, healthy: Answer, _: Plan) -> Response:
    body = json.dumps(healthy).encode()

    async def half() -> AsyncIterator[bytes]:
        yield body[: len(body) // 2]
        raise ConnectionAbortedError

    # The length promises more than comes, so the client sees the connection break.
    return StreamingResponse(half(), headers={"Content-Length": str(len(body))})


def _malformed(_fault: Fault, healthy: Answer, _: Plan) -> Response:
    body = json.dumps(healthy)
    return Response(body[: len(body) // 2], media_type="application/json")


def _empty(_fault: Fault, healthy: Answer, _: Plan) -> Response:
    return JSONResponse(dict.fromkeys(healthy, ()))


def _renamed(_fault: Fault, healthy: Answer, _: Plan) -> Response:
    return JSONResponse({f"{name}_v2": value for name, value in healthy.items()})


def _partial(_fault: Fault, healthy: Answer, _: Plan) -> Response:
    name, items = next((n, v) for n, v in healthy.items() if isinstance(v, list))
    failed = {"item": items[-1]["name"], "reason": "supplier did not answer", "retryable": True}
    return JSONResponse({name: items[:-1], "partial_failures": [failed]})


def _application_error(_fault: Fault, _healthy: Answer, _: Plan) -> Response:
    return JSONResponse({"gds_error": "UC 4097 RESTRICTED"})


RESPONSES: dict[str, Callable[[Fault, Answer, Plan], Response]] = {
    "status": _status,
    "cut": _cut,
    "malformed": _malformed,
    "empty": _empty,
    "renamed": _renamed,
    "partial": _partial,
    "application_error": _application_error,
}


class QuietServer(uvicorn.Server):
    """A server among several in one loop: it leaves the signals to the process."""

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                access_log=False,
                log_level="critical",
                timeout_graceful_shutdown=0,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


class Gate:
    """A port of its own that can stop listening and start again."""

    def __init__(self, app: Starlette) -> None:
        self._app = app
        # Bound and not listening: it keeps the number while the port refuses connections.
        self._placeholder = _bound(0)
        self.port = int(self._placeholder.getsockname()[1])
        self._server: QuietServer | None = None
        self._task: asyncio.Task[None] | None = None

    async def set_open(self, is_open: bool) -> None:
        """Listen, or refuse connections from now on."""
        if is_open and self._server is None:
            self._server = QuietServer(self._app)
            self._task = asyncio.create_task(self._server.serve([_listening(self.port)]))
        elif not is_open and self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
            self._server = None

    async def follow(self, is_refusing: Callable[[], bool]) -> None:
        """Open and close as the scenario goes."""
        while True:
            await self.set_open(not is_refusing())
            await asyncio.sleep(GATE_INTERVAL)


def _bound(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind((HOST, port))
    return listener


def _listening(port: int) -> socket.socket:
    listener = _bound(port)
    listener.listen(1024)
    return listener


async def serve(plan: Plan) -> None:
    """Serve until SIGTERM or SIGINT."""
    scenario = plan.load_scenario()
    backend = Backend(plan, scenario)
    app = backend.app()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    main = _listening(0)
    gates = {key: Gate(app) for key in scenario.refusable()}
    for gate in gates.values():
        await gate.set_open(True)
    servers = asyncio.create_task(QuietServer(app).serve([main]))
    followers = [
        asyncio.create_task(gate.follow(lambda key=key: backend.refuses(*key)))  # type: ignore[misc]
        for key, gate in gates.items()
    ]
    _announce(plan, main.getsockname()[1], {key: gate.port for key, gate in gates.items()})
    await stopped.wait()
    for task in (*followers, servers):
        task.cancel()


def _announce(plan: Plan, port: int, gates: dict[tuple[str, str], int]) -> None:
    endpoints = {
        f"{region}/{tool}": f"http://{HOST}:{gates.get((tool, region), port)}/{region}/{tool}"
        for tool in HTTP_TOOLS
        for region in REGIONS
    }
    temporary = plan.endpoints_path.with_suffix(".new")
    temporary.write_text(json.dumps(endpoints))
    temporary.replace(plan.endpoints_path)


def main() -> None:
    """Run the backend of the plan given as the only argument."""
    plan = Plan.from_json(sys.argv[1])
    asyncio.run(serve(plan))
    # Connections that clients keep open would hold up a slower exit, and nothing is at stake.
    os._exit(0)


if __name__ == "__main__":
    main()
