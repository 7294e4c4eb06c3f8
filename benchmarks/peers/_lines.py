"""How a peer talks: a line of facts, then one line of JSON for each line of JSON that it reads."""

import json
import sys
import time
from collections.abc import Callable, Mapping

Handler = Callable[[dict], Mapping[str, object]]


def serve(facts: Mapping[str, object], handlers: Mapping[str, Handler]) -> None:
    """Answer requests {"measure": name, ...} until the input ends; a failure is an answer too."""
    print(json.dumps(facts), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = handlers[request.pop("measure")](request)
        except Exception as error:  # the asker decides what a rival's failure means
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def timed(function: Callable[[], object], count: int) -> dict[str, object]:
    """Call `function` `count` times; the answer holds the seconds of each call."""
    samples = []
    for _ in range(count):
        began = time.perf_counter()
        function()
        samples.append(time.perf_counter() - began)
    return {"seconds": samples}
