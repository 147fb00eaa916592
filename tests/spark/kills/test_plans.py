"""Which kills the long run plans; nothing is killed here."""

from __future__ import annotations

from itertools import product

from odradek.spark.transactions import hooks
from spark.kills.kill_run import EXECUTOR, Kill
from spark.kills.main import CLUSTERS, EVERY_KIND, IN_TASKS, MASTERS, every_kill, plans
from spark.kills.one_query import FORMS


def test_a_run_kills_at_every_place_of_both_forms_and_executors_where_their_tasks_are() -> None:
    combinations = [(form, cluster, master) for cluster, master, form in product(CLUSTERS, MASTERS, FORMS)]
    planned: dict[str, set[Kill]] = {form: set() for form in FORMS}
    for (form, _, _), plan in zip(combinations, plans(1, EVERY_KIND, combinations), strict=True):
        assert plan
        planned[form] |= set(plan)
    for form in FORMS:
        assert planned[form] == set(every_kill(form))
        assert {kill.point for kill in planned[form]} == set(hooks.POINTS)
        of_executors = {kill.point for kill in planned[form] if kill.victim == EXECUTOR}
        assert of_executors == set(IN_TASKS[form])
