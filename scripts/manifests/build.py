"""The output of `kustomize build` for deploy/kubernetes, as far as the kustomizations there use it.

Supported are `resources` (files and folders), `namespace`, `images` (newName, newTag), `replicas`, `generatorOptions`
with `disableNameSuffixHash: true`, `configMapGenerator` and `secretGenerator` (name, files, `behavior: merge`), and
`patches` of steps of RFC 6902 that add, from a file, with a target of kind and name. All other keys are refused."""

import base64
import pathlib

import yaml

KEYS = {"apiVersion", "kind", "namespace", "resources", "images", "replicas", "generatorOptions", "configMapGenerator",
        "secretGenerator", "patches"}
GENERATOR_KEYS = {"name", "files", "behavior"}
# All other kinds in deploy/kubernetes belong to a namespace.
WITHOUT_NAMESPACE = {"Namespace"}


class Wrong(Exception):
    """Something in deploy/kubernetes is not as it should be."""


class Loader(yaml.SafeLoader):
    """A repeated key is a mistake; it does not override the first."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise Wrong(f"line {node.start_mark.line + 1}: {', '.join(sorted(twice))} stands twice")
        return super().construct_mapping(node, deep)


def read(path):
    """All documents of a file."""
    return [document for document in yaml.load_all(pathlib.Path(path).read_text(), Loader) if document]


def only(known, given, where):
    unknown = set(given) - known
    if unknown:
        raise Wrong(f"{where}: scripts/manifests/build.py does not know {', '.join(sorted(unknown))}")


def build(folder):
    """The objects of a folder with a kustomization.yaml."""
    folder = pathlib.Path(folder)
    where = folder / "kustomization.yaml"
    [text] = read(where)
    only(KEYS, text, where)
    objects = [item for name in text.get("resources", []) for item in resources(folder / name)]
    generate(objects, text, folder, where)
    for patch in text.get("patches", []):
        only({"path", "target"}, patch, where)
        apply_steps(find(objects, patch["target"]["kind"], patch["target"]["name"]), folder / patch["path"])
    for item in objects:
        count_replicas(item, text.get("replicas", []))
        rename_images(item, text.get("images", []))
        if "namespace" in text and item["kind"] not in WITHOUT_NAMESPACE:
            item["metadata"]["namespace"] = text["namespace"]
    return objects


def resources(path):
    return build(path) if path.is_dir() else read(path)


def find(objects, kind, name):
    found = [item for item in objects if (item["kind"], item["metadata"]["name"]) == (kind, name)]
    if len(found) != 1:
        raise Wrong(f"{len(found)} objects are {kind} {name}, not one")
    return found[0]


def generate(objects, text, folder, where):
    kinds = [("configMapGenerator", "ConfigMap", plain), ("secretGenerator", "Secret", encoded)]
    for key, kind, value in kinds:
        for given in text.get(key, []):
            if text.get("generatorOptions") != {"disableNameSuffixHash": True}:
                raise Wrong(f"{where}: {key} needs generatorOptions with disableNameSuffixHash alone")
            only(GENERATOR_KEYS, given, where)
            data = {pathlib.Path(name).name: value(folder / name) for name in given["files"]}
            if given.get("behavior") == "merge":
                find(objects, kind, given["name"])["data"].update(data)
            else:
                objects.append({"apiVersion": "v1", "kind": kind, "metadata": {"name": given["name"]}, "data": data})


def plain(path):
    return path.read_text()


def encoded(path):
    return base64.b64encode(path.read_bytes()).decode()


def apply_steps(item, path):
    [steps] = read(path)
    for step in steps:
        only({"op", "path", "value"}, step, path)
        *way, last = step["path"].strip("/").split("/")
        place = item
        for key in way:
            place = place[int(key)] if isinstance(place, list) else place[key]
        if step["op"] != "add" or isinstance(place, list) != (last == "-"):
            raise Wrong(f"{path}: {step['op']} {step['path']}: only what adds a member, or an element at the end, is known")
        place.append(step["value"]) if isinstance(place, list) else place.update({last: step["value"]})


def count_replicas(item, counts):
    for count in counts:
        if item["kind"] == "StatefulSet" and item["metadata"]["name"] == count["name"]:
            item["spec"]["replicas"] = count["count"]


def rename_images(item, images):
    if item["kind"] != "StatefulSet":
        return
    for image in images:
        for container in item["spec"]["template"]["spec"]["containers"]:
            if container["image"] == image["name"]:
                container["image"] = f"{image['newName']}:{image['newTag']}"
