"""Every example on a fake server of each kind, where the server can do what it asks for."""

import pytest

from lmc.diagnostics import LmcError
from tests.runtime.remote.fake_model import model_reply
from tests.runtime.remote.test_commands import serving
from tests.test_examples import CALLS, check_shape, run


@pytest.mark.parametrize("backend", ["openai", "sglang", "vllm"])
@pytest.mark.parametrize("name", sorted(CALLS))
def test_an_example(name, backend):
    with serving(model_reply) as server:
        settings = {"level": 1, "backend": backend, "base_url": server.url, "model": "m", "network": {"deadline": 20}}
        if (name, backend) == ("classify", "openai"):
            # It chooses in raw text, where this interface gives no log-probabilities and takes no schema.
            with pytest.raises(LmcError, match="`select` in raw text"):
                run(name, **settings)
            return
        result, said, report = run(name, **settings)
    check_shape(name, result, said, report)
    assert report.attempts and all(attempt.outcome == "answered" for attempt in report.attempts)
