"""Whatever the OpenAPI document allows and whatever it forbids: no answer is a 5xx, and each is what the document says.

schemathesis makes the requests from the document, with a fixed seed.  It also checks that what the document allows is taken, and that
what it forbids is refused; of OpenAI's routes the first is left out, since their options exclude one another in ways that no schema says.
"""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS

from lmc.server.program_files import load_programs
from tests.server.offered import KINDS, written
from tests.server.running import KEYS, keyed, running

EXAMPLES = 8
#: Of each request, so that it ends soon and says which model it wants.
SMALL = {"model": "dry", "n": 2, "max_tokens": 12}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with running(programs=load_programs(written(tmp_path_factory.mktemp("programs"), {"p.lmp": KINDS}), {})) as one:
        yield one


@pytest.fixture(scope="module")
def operations(served):
    document = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
    return {found.ok().label: found.ok() for found in document.get_all_operations()}


PROGRAMS = [f"POST /programs/p/{name}" for name in ("everything", "label", "story", "nothing")]
OPENAI = ["POST /v1/chat/completions", "POST /v1/completions"]
PLAIN = ["GET /v1/models", "GET /v1/models/{name}", "GET /health", "GET /metrics"]


def test_the_document_has_these_routes(operations):
    assert sorted(operations) == sorted(PROGRAMS + OPENAI + PLAIN)


@pytest.mark.parametrize("label", PROGRAMS + OPENAI + PLAIN)
def test_what_the_document_allows(operations, label):
    statuses = asked(operations[label], GenerationMode.POSITIVE)
    assert 200 in statuses or label == "GET /v1/models/{name}", "else nothing was seen of the answers"


@pytest.mark.parametrize("label", PROGRAMS + OPENAI)
def test_what_the_document_forbids(operations, label):
    assert asked(operations[label], GenerationMode.NEGATIVE) & {400, 422}


def test_a_server_with_keys_asks_for_one_where_the_document_says_so(tmp_path):
    with running(**keyed("alice"), programs=load_programs(written(tmp_path, {"p.lmp": KINDS}), {})) as served:
        with_key = {"Authorization": f"Bearer {KEYS['alice']}"}
        document = schemathesis.openapi.from_url(f"{served.url}/openapi.json", headers=with_key)
        for found in document.get_all_operations():
            operation = found.ok()
            needs = bool(operation.definition.raw.get("security"))
            assert needs is (operation.path != "/health"), operation.label
            if needs:
                assert asked(operation, GenerationMode.POSITIVE, examples=2) == {401}
                assert 401 not in asked(operation, GenerationMode.POSITIVE, examples=2, headers=with_key)


def asked(operation: Any, mode: GenerationMode, *, examples: int = EXAMPLES, headers: dict[str, str] | None = None) -> set[int]:
    """The statuses of the answers, which are all checked."""
    statuses = set()

    @seed(1)
    @settings(max_examples=examples, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        if mode is GenerationMode.POSITIVE and operation.path.startswith("/v1") and isinstance(case.body, dict):
            case.body.pop("max_completion_tokens", None)
            case.body.update(SMALL)
        response = case.call(headers=headers)
        statuses.add(response.status_code)
        case.validate_response(response, excluded_checks=left_out(operation, response), headers=headers)

    check()
    return statuses


def left_out(operation: Any, response: Any) -> list[Any]:
    """A run that fails on arguments that fit is a 422 too; a deadline of a billionth of a second is used up."""
    failed = response.status_code == 422 and response.json()["error"]["type"] == "run_error"
    return [CHECKS.get_one("positive_data_acceptance")] if failed or operation.path.startswith("/v1") else []
