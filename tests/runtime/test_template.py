"""Chat templates: the markers of real kinds, templates that cannot be used, and templates that attack (case L-02)."""

import json
import time

import pytest

from lmc.diagnostics import LmcError, Severity
from lmc.runtime.markers import isolate
from lmc.runtime.sandbox import TemplateError, render
from lmc.runtime.template import load_template
from lmc.runtime.tokenizer import load_tokenizer
from tests.runtime.folders import CHATML, byte_level_json, write_folder

MESSAGES = {"messages": [{"role": "user", "content": "x"}]}

# No system turn of its own: the system's text stands inside of the first user turn; roles must alternate.
INST = """{%- if messages[0]['role'] == 'system' %}{% set sys = messages[0]['content'] + '\n\n' %}{% set messages = messages[1:] %}
{%- else %}{% set sys = '' %}{% endif %}{{- bos_token }}
{%- for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}
{%- if m['role'] == 'user' %}{{- '[INST] ' + (sys if loop.first else '') + m['content'] + ' [/INST]' }}
{%- else %}{{- ' ' + m['content'] + eos_token }}{% endif %}{% endfor %}"""
NO_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" + CHATML


def test_markers_of_chatml():
    markers = isolate(CHATML, {})
    assert markers.start == {role: f"<|im_start|>{role}\n" for role in ("user", "system", "assistant")}
    assert markers.between["user", "assistant"] == "<|im_end|>\n<|im_start|>assistant\n"
    assert markers.end == "<|im_end|>\n" and markers.differences == ()


def test_markers_where_the_system_text_stands_in_the_user_turn():
    markers = isolate(INST, {"bos_token": "<s>", "eos_token": "</s>"})
    assert markers.start == {"user": "<s>[INST] ", "system": "<s>[INST] "}
    assert markers.between == {
        ("user", "assistant"): " [/INST] ", ("assistant", "user"): "</s>[INST] ", ("system", "user"): "\n\n"}


def test_a_role_that_the_template_refuses_is_left_out():
    markers = isolate(NO_SYSTEM, {})
    assert "system" not in markers.start and "user" in markers.start


def test_generation_marks_print_their_body():
    source = CHATML.replace("{{ '<|im_start|>' + m['role']", "{% generation %}{{ '' }}{% endgeneration %}{{ '<|im_start|>' + m['role']")
    assert isolate(source, {}) == isolate(CHATML, {})


@pytest.mark.parametrize(
    "source, what",
    [
        (CHATML.replace("m['content'] +", "(m['content'] | trim) +"), "strips spaces"),
        (CHATML.replace("'\n' + m['content']", "'\n' + ('' if m['role'] == 'user' or not loop.last else '<think></think>') + m['content']"),
         "past turns"),
    ],
)
def test_templates_that_rewrite_past_turns_are_used_with_a_warning(tmp_path, source, what):
    folder = write_folder(tmp_path, byte_level_json(), template=source)
    (warning,) = load_template(folder, load_tokenizer(folder)).warnings
    assert what in warning.message and warning.severity is Severity.WARNING and str(folder) in warning.message


@pytest.mark.parametrize(
    "source, why",
    [
        ("{{ messages | length }} turns: " + CHATML, "depends on what follows"),
        ("{{ messages[-1]['content'] }}", "drops or changes the content"),
        (CHATML.replace("m['content']", "m['content'] + m['content']"), "repeats or reorders"),
        (CHATML.replace("m['content']", "m['content'] | upper"), "drops or changes"),
        (CHATML.replace("'<|im_end|>\n'", "(loop.index | string) + '<|im_end|>\n'"), "otherwise than the second"),
        ("{% for %}", "Expected an expression"),
        ("{{ raise_exception('no such thing') }}", "no such thing"),
    ],
)
def test_templates_that_cannot_be_applied_turn_by_turn(tmp_path, source, why):
    folder = write_folder(tmp_path, byte_level_json(), template=source)
    with pytest.raises(LmcError, match=why) as caught:
        load_template(folder, load_tokenizer(folder))
    assert caught.value.diagnostics[0].code == "E0808" and str(folder) in str(caught.value)


def test_no_template_is_no_error(tmp_path):
    folder = write_folder(tmp_path, byte_level_json(), template=None)
    assert load_template(folder, load_tokenizer(folder)) is None


@pytest.mark.parametrize("files", [
    {"chat_template.jinja": CHATML},
    {"tokenizer_config.json": '{"chat_template": [{"name": "default", "template": %s}]}' % json.dumps(CHATML)},
    {"chat_template.json": '{"chat_template": %s}' % json.dumps(CHATML)},
])
def test_every_place_of_a_template(tmp_path, files):
    folder = write_folder(tmp_path, byte_level_json(), template=None)
    for name, text in files.items():
        (folder / name).write_text(text)
    tokenizer = load_tokenizer(folder)
    assert load_template(folder, tokenizer).start["user"] == (tokenizer.control_id("<|im_start|>"), "user\n")


ATTACKS = {
    "climbs": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "climbs through globals": "{{ cycler.__init__.__globals__.os.system('touch CANARY') }}",
    "climbs through itself": "{{ self.__init__.__globals__ }}",
    "formats": "{{ '{:>9999999999}'.format('a') }}",
    "changes its input": "{{ messages.append(1) }}",
    "reads a file": "{% include '/etc/passwd' %}",
    "unknown filter": "{{ 'a' | nosuch }}",
    "loops": "{% for i in range(1000000000) %}{% endfor %}",
    "loops in loops": "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}",
    "loops over lists": "{% for a in [1]*1000 %}{% for b in [1]*1000 %}{% for c in [1]*1000 %}{% endfor %}{% endfor %}{% endfor %}",
    "calls itself": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "calls itself twice": "{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "multiplies": "{{ 'a' * 10000000000 }}",
    "raises to a power": "{{ 9 ** 99999999 }}",
    "pads": "{{ '%9999999999d' % 1 }}",
    "doubles by ~": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "doubles by +": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "doubles by printing": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x %}{{ns.x}}{{ns.x}}{% endset %}{% endfor %}",
    "grows by replace": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x.replace('a', ns.x) %}{% endfor %}",
    "grows by a filter": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x|replace('a', ns.x) %}{% endfor %}",
    "grows by join": "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x.join(['a']*1000) %}{% endfor %}",
    "nests lists": "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x,ns.x] %}{% endfor %}{{ns.x}}",
    "nests lists for JSON": "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x,ns.x] %}{% endfor %}{{ns.x|tojson}}",
    "compares nested lists": "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x,ns.x] %}"
                             "{% set ns.y = [ns.y,ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
    "sorts nested lists": "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x,ns.x] %}"
                          "{% set ns.y = [ns.y,ns.y] %}{% endfor %}{{ [ns.x, ns.y] | sort | length }}",
    "is nested deeply": "{{" + "(" * 5000 + "1" + ")" * 5000 + "}}",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_template_that_attacks_is_refused_at_once(tmp_path, monkeypatch, attack):
    monkeypatch.chdir(tmp_path)
    started = time.monotonic()
    with pytest.raises(TemplateError):
        render(ATTACKS[attack], MESSAGES)
    # A second or so on an idle machine; what is not metered would take hours or all memory.
    assert time.monotonic() - started < 30
    assert not (tmp_path / "CANARY").exists()


def test_what_real_templates_use_is_allowed():
    source = (
        "{%- set ns = namespace(n=0) -%}{%- for m in messages -%}{%- set ns.n = ns.n + 1 -%}{%- if loop.first -%}"
        "{{ m.role | capitalize }}:{{ m['content'].strip().split(',')[0] ~ 1 }}|{{ {'a': 'é'} | tojson }}{%- break -%}{%- endif -%}"
        "{%- endfor -%}{{ ns.n }}{{ tools is none }}{{ x is defined }}{{ 'ab'.replace('a', 'c') | upper }}{{ [1, 2] | join('-') }}"
    )
    text = render(source, {"messages": [{"role": "user", "content": " a,b "}] * 2, "tools": None})
    assert text == 'User:a1|{"a": "é"}1TrueFalseCB1-2'
