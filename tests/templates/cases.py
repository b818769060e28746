"""The clusters whose files are kept as golden ones: one host, three hosts, two GPUs a host."""

from pathlib import Path

from trainer.config import Run
from trainer.deploy.container import Engine
from trainer.deploy.hostfiles import Service, host_files
from trainer.launch import Host, launches

TEMPLATES = Path(__file__).parents[2] / "templates"
GOLDEN = Path(__file__).parent / "golden"
IMAGE = "127.0.0.1:5077/gradferry/trainer:0123456789ab"

ONE = [Host("fra", "eu", "10.88.0.1")]
THREE = [Host("ap-1", "ap", "10.88.0.1"), Host("eu-1", "eu", "10.88.0.2"), Host("na-1", "na", "10.88.0.3")]
GPUS = [
    Host("sin", "ap", "10.88.0.1", devices=2, gpus=True),
    Host("iad", "na", "10.88.0.2", devices=2, gpus=True, cuda_visible_devices="0,2"),
]
RUN = Run.model_validate({"name": "golden", "limits": {"cpus": 1.5, "memory_gb": 4.0, "threads": 2}})

# name -> (run, hosts, engine)
CASES = {
    "one_host": (Run(name="golden"), ONE, Engine()),
    "three_hosts": (RUN, THREE, Engine()),
    "two_gpus_a_host": (RUN, GPUS, Engine(cdi=True)),
}


def rendered_case(name: str) -> dict[str, str]:
    """`<host>/<file name>` -> text of what templates render, for every host of the case."""
    run, hosts, engine = CASES[name]
    texts = {}
    for host, launch in launches(run, hosts).items():
        files = host_files(
            run,
            hosts,
            launch,
            engine,
            image=IMAGE,
            service=Service(),
            overrides={},
            templates=TEMPLATES,
        )
        texts |= {f"{host}/{Path(path).name}": text for path, text in files.items() if not path.endswith(".json")}
    return texts
