"""Which tables of a pipeline a table depends on."""

from __future__ import annotations

import re

from odradek.spark.pipeline.definition.model import PipelineModel, PythonStep


def tables_needed(pipeline: PipelineModel, table: str) -> set[str]:
    """The tables that one depends on, itself included: by parameters, or by words of the SQL."""
    steps = {step.name: step for step in pipeline.steps}
    names = {source.name for source in pipeline.sources} | set(steps)
    needed: set[str] = set()
    open_names = [table]
    while open_names:
        name = open_names.pop()
        if name in needed:
            continue
        needed.add(name)
        step = steps.get(name)
        if isinstance(step, PythonStep):
            open_names += [one for one in step.inputs if one in names]
        elif step is not None:
            words = {word.lower() for word in re.findall(r"\w+", step.text)}
            open_names += [one for one in names if one.lower() in words and one != name]
    return needed
