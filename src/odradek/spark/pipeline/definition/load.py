"""Loads a pipeline from a file, YAML or Python, and checks it. Spark is not imported."""

from __future__ import annotations

import sys
import traceback
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

from odradek.spark.pipeline.definition import yaml_file
from odradek.spark.pipeline.definition.arguments import bootstrap_of
from odradek.spark.pipeline.definition.checks import check
from odradek.spark.pipeline.definition.errors import NOWHERE, PipelineError, Place
from odradek.spark.pipeline.definition.model import PipelineModel

MODULE_NAME = "odradek_pipeline_file"
_SUFFIXES = {".yaml", ".yml", ".py"}


def load(path: str, bootstrap: str | None = None) -> PipelineModel:
    """The checked pipeline of a file; PipelineError names the line that is wrong."""
    file = Path(path)
    if file.suffix not in _SUFFIXES:
        raise PipelineError(f"{path}: a pipeline file ends with .yaml or .py")
    if not file.is_file():
        raise PipelineError(f"{path}: no such file")
    pipeline = _from_python(file) if file.suffix == ".py" else _from_yaml(file)
    if bootstrap is not None:
        pipeline = replace(pipeline, bootstrap=bootstrap_of(bootstrap, NOWHERE) or bootstrap)
    check(pipeline)
    return pipeline


def text_of(file: Path) -> str:
    """The text of a YAML file, with its ends of lines as they are."""
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError:
        raise PipelineError(f"{file}: not a text in UTF-8") from None


def _from_yaml(file: Path) -> PipelineModel:
    return yaml_file.parse(text_of(file), str(file))


def _from_python(file: Path) -> PipelineModel:
    found = {id(one): one for one in vars(_executed(file)).values() if isinstance(one, PipelineModel)}
    if len(found) != 1:
        raise PipelineError(
            f"{len(found)} pipelines are in this file, and one is needed: `name = Pipeline(…)`",
            Place(str(file)),
        )
    (pipeline,) = found.values()
    return pipeline


def _executed(file: Path) -> ModuleType:
    """The module of a file; its functions are pickled by value, because workers cannot import it."""
    loader = SourceFileLoader(MODULE_NAME, str(file))
    spec = spec_from_loader(MODULE_NAME, loader)
    assert spec is not None
    module = module_from_spec(spec)
    module.__file__ = str(file)
    sys.modules[MODULE_NAME] = module
    directory = str(file.resolve().parent)
    if directory not in sys.path:
        sys.path.insert(0, directory)  # for modules beside it
    try:
        exec(compile(file.read_bytes(), str(file), "exec"), module.__dict__)
    except PipelineError:
        raise
    except SyntaxError as error:
        raise PipelineError(f"this is not Python: {error.msg}", Place(str(file), error.lineno or 0)) from None
    except Exception as error:
        lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == str(file)]
        sentence = _python_sentence(error)
        raise PipelineError(sentence, Place(str(file), (lines or [0])[-1] or 0)) from None
    return module


def _python_sentence(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return (
        text if isinstance(error, TypeError | NameError | ImportError) else f"{type(error).__name__}: {text}"
    )
