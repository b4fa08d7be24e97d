"""The cases of kinds b, f, g, h, i and k: which tests show that they do not happen here.  Kind c is in `test_known_bugs.py`."""

import ast

import pytest

from tests.cases.test_known_bugs import ROOT

TOKENS, CACHE, SCHEDULING, SAMPLING = (f"cases/test_{part}.py" for part in ("tokens", "cache", "scheduling", "sampling"))
DRAW, LOAD, CONFIG = (f"runtime/model/test_{part}.py" for part in ("sampling", "load", "config"))
ASKING, RETRIES = (f"runtime/remote/test_{part}.py" for part in ("asking", "retries"))
ENGINE, TOKENIZER, TEMPLATE = (f"runtime/test_{part}.py" for part in ("engine", "tokenizer", "template"))

WHERE = {
    "B-01": {TOKENS: ["test_b01_characters_of_several_tokens", "test_b01_no_piece_of_a_stream_is_half_a_character"],
             ENGINE: ["test_streams_of_two_requests_do_not_mix_and_hold_whole_characters"]},
    "B-02": {TOKENS: ["test_b02_spaces_of_a_sentencepiece_vocabulary"]},
    "B-03": {TOKENS: ["test_b03_stops", "test_b03_stops_are_found_in_characters", "test_b03_a_stop_inside_one_token"]},
    "F-01": {CACHE: ["test_f01_ten_thousand_operations_keep_the_books"]},
    "F-02": {CACHE: ["test_f02_what_is_larger_than_the_pool_is_refused_at_once_with_the_numbers"]},
    "F-04": {CACHE: ["test_f04_models_that_differ_in_weights_or_positions_share_nothing"]},
    "F-05": {"runtime/model/test_determinism.py": ["test_ids_are_the_same_in_any_company"],
             "runtime/model/test_determinism_examples.py": ["test_the_examples_are_answered_alike_in_any_company"]},
    "F-06": {CACHE: ["test_f06_whoever_goes_at_any_moment_is_gone_within_two_steps",
                     "test_f06_whoever_goes_while_its_constraint_is_made_ready_is_gone_too"]},
    "F-08": {CACHE: ["test_f08_a_clock_at_the_head_ends_all_sharing_and_is_told"]},
    "G-01": {SCHEDULING: ["test_g01_a_cold_request_starts_within_the_bound_whatever_the_supply",
                          "test_g01_of_equal_age_the_longer_match_goes_first_and_more_is_found_than_in_order_of_arrival"]},
    "G-02": {SCHEDULING: ["test_g02_a_long_prompt_stalls_neither_running_nor_short_requests"]},
    "H-01": {ENGINE: ["test_a_seeded_sample_does_not_depend_on_its_neighbours"],
             SAMPLING: ["test_h01_a_seeded_sample_is_the_same_after_a_retraction", "test_h01_branches_of_a_seeded_fork_differ_and_repeat"]},
    "H-02": {DRAW: ["test_grid", "test_off_values_of_top_k_are_the_same", "test_wrong_values_are_named"],
             ENGINE: ["test_wrong_options_are_refused"]},
    "H-03": {DRAW: ["test_logits_that_are_not_finite"], ENGINE: ["test_logits_that_are_not_finite_fail_their_request_alone"]},
    "H-05": {DRAW: ["test_every_option_changes_a_draw"],
             "cases/test_options.py": ["test_each_option_changes_the_value", "test_what_is_recorded_and_streamed_is_asked_for"],
             "parser/check/test_cases.py": ["test_each_option_is_known_and_its_misspelling_is_not"]},
    "H-07": {SAMPLING: ["test_eight_draws_are_eight_samples_at_every_level", "test_two_unseeded_runs_differ_and_argmax_does_not",
                        "test_generations_that_differ_in_an_option_stay_apart"]},
    "I-01": {RETRIES: ["test_what_was_not_answered_is_tried_again", "test_a_wait_of_days_is_not_waited_for",
                       "test_a_wrong_request_is_not_sent_again", "test_what_may_have_been_billed_is_sent_again_only_where_that_is_allowed",
                       "test_a_server_that_comes_late_is_waited_for"]},
    "I-02": {RETRIES: ["test_an_answer_that_is_not_whole_is_an_error", "test_what_came_before_an_error_is_told",
                       "test_null_content_and_a_last_event_without_choices_are_no_errors"],
             "runtime/remote/test_events.py": ["test_errors_in_a_stream_whatever_they_are_called"]},
    "I-04": {ASKING: ["test_five_holes"]},
    "I-05": {ASKING: ["test_what_a_target_cannot_do_is_told_before_anything_runs", "test_six_stops_on_a_server_that_takes_four",
                      "test_a_value_that_is_none_is_asked_for_again_and_never_bound"],
             "runtime/remote/test_commands.py": ["test_plan_lists_what_is_emulated_and_asks_nobody",
                                                 "test_stop_texts_beyond_those_that_are_taken_are_in_the_plan"]},
    "K-01": {LOAD: ["test_shards_equal_one_file", "test_missing_shard", "test_truncated_shard", "test_missing_index",
                    "test_unusual_shard_names", "test_stale_extra_shard_is_ignored", "test_no_weights"]},
    "K-02": {LOAD: ["test_output_matrix", "test_tied_with_another_output_matrix_warns_and_ties", "test_untied_without_output_matrix"]},
    "K-03": {CONFIG: ["test_rotary_table_equals_transformers", "test_logits_at_far_positions", "test_refuses_by_name",
                      "test_unknown_key_is_named"]},
    "K-05": {TOKENIZER: ["test_end_tokens_are_the_union_of_all_files", "test_a_broken_or_missing_file_is_named"],
             TEMPLATE: ["test_no_template_is_no_error", "test_every_place_of_a_template"]},
}


@pytest.mark.parametrize("case", WHERE)
def test_each_has_its_tests(case):
    for file, names in WHERE[case].items():
        tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
        assert set(names) <= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
