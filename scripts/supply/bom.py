"""The bill of materials of the image's Python side as CycloneDX 1.6: `./scripts/sbom`, run by the tools' own Python.

Components: every package that requirements/ pins for the image, with its licence; the Java libraries that pyspark
brings; what is served from static/vendor. The graph says which needs which. https://cyclonedx.org/docs/1.6/json/
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from supply import IMAGE, ROOT
from supply.jars import Jar, jars
from supply.licences import Allowed, allowed, licence
from supply.packages import Installed, Missing, Package, asked_for, canonical, graph, installed, locked, require

_LICENCES = LicenseFactory()


def bill(environment: Installed) -> Bom:
    """The bill of what is installed in `environment`. packages.Missing: it is not what requirements/ pins."""
    packages, allow = locked(IMAGE), allowed()
    require(packages, environment)
    pins = {package.key: environment[package.key] for package in packages}
    made = {package.key: _package(package, environment, allow) for package in packages}
    bom, product = Bom(), _product()
    bom.metadata.component = product
    bom.components.update(made.values())
    roots = asked_for(IMAGE)
    files = [_served(path, allow) for path in sorted((ROOT / "static" / "vendor").iterdir())]
    bom.components.update(files)
    bom.register_dependency(product, [*(made[canonical(one.name)] for one in roots), *files])
    for name, needed in graph(roots, pins).items():
        bom.register_dependency(made[name], [made[one] for one in sorted(needed)])
    for name, distribution in pins.items():
        libraries = [_jar(jar) for jar in _once(jars(distribution))]
        bom.components.update(libraries)
        bom.register_dependency(made[name], libraries)
    return bom


def _product() -> Component:
    version = re.search(r'__version__ = "(.+)"', (ROOT / "lakemirror" / "__init__.py").read_text())
    name = "lakemirror"
    return Component(name=name, version=version[1] if version else None, type=ComponentType.APPLICATION, bom_ref=name)


def _package(package: Package, environment: Installed, allow: Allowed) -> Component:
    url = PackageURL(type="pypi", name=package.key, version=package.version)
    expression = licence(package, environment, allow)
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        purl=url,
        bom_ref=str(url),
        licenses=[_LICENCES.make_from_string(expression)] if expression else [],
    )


def _jar(jar: Jar) -> Component:
    url = PackageURL(type="maven", namespace=jar.group, name=jar.artifact, version=jar.version) if jar.group else None
    return Component(
        name=jar.artifact,
        group=jar.group or None,
        version=jar.version or None,
        type=ComponentType.LIBRARY,
        purl=url,
        bom_ref=f"jar:{jar.sha256}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=jar.sha256)],
    )


def _once(found: Iterable[Jar]) -> list[Jar]:
    """The same bytes under two names are one library."""
    return list({jar.sha256: jar for jar in found}.values())


def _served(path: Path, allow: Allowed) -> Component:
    """A file of static/vendor, named NAME-VERSION.min.js."""
    match = re.fullmatch(r"(.+)-(\d[\d.]*\d)(\.min)?\.js", path.name)
    if match is None or path.name not in allow.shipped:
        raise ValueError(f"static/vendor/{path.name}: name it NAME-VERSION.min.js, and its licence below [vendor]")
    url = PackageURL(type="npm", name=match[1], version=match[2])
    return Component(
        name=match[1],
        version=match[2],
        type=ComponentType.LIBRARY,
        purl=url,
        bom_ref=str(url),
        licenses=[_LICENCES.make_from_string(allow.shipped[path.name])],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=hashlib.sha256(path.read_bytes()).hexdigest())],
    )


def main(arguments: list[str]) -> int:
    """SITE_PACKAGES FILE: the bill of what is installed there, checked against CycloneDX's schema, into the file."""
    site_packages, file = arguments
    try:
        bom = bill(installed([site_packages]))
    except (Missing, ValueError) as error:
        print(f"lakemirror: {error}", file=sys.stderr)
        return 1
    text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1)
    if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        print(f"the bill is not what CycloneDX's schema asks for: {wrong}", file=sys.stderr)
        return 1
    Path(file).write_text(text + "\n")
    java = sum(str(component.bom_ref.value).startswith("jar:") for component in bom.components)
    print(f"{len(bom.components)} components, {java} of them Java libraries: {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
