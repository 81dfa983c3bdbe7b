"""Which earlier manifests a manifest names by their digests, beside the one before it.

Each manifest names the one before it, so the newest vouches for all. To ask it about an old one by that alone, every
manifest in between has to be read, or what sums them up: some dozens of documents. So each names more of them: all
manifests before number n are cut into blocks of powers of two, as n is written in binary (13 = 8 + 4 + 1), and the last
manifest of each block is named. From there the next step halves the block, so any manifest is as many documents away as
its distance has binary digits, or fewer. What the next manifest names is among what this one does and this one itself,
so nothing is read for it, and a million commits make twenty names at most.

The manifest with the table's columns is named as well, so a load compares it without reading anything else.

A laketier from before passes over these names, and leaves them out of what it writes. Then what is named begins anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from laketier.kit.manifests.manifest import Manifest


def ends_before(number: int) -> Iterator[int]:
    """The last manifest of each block before ``number``, the newest first."""
    while number:
        yield number - 1
        number &= number - 1


def digests_after(head: Manifest) -> dict[int, str]:
    """What the manifest after ``head`` names, as far as ``head`` knows it. Not ``head`` itself, which it follows."""
    wanted = {*ends_before(head.number + 1), head.metadata_at} - {head.number}
    known = ((number, head.digest_of(number)) for number in sorted(wanted))
    return {number: digest for number, digest in known if digest is not None}


def step_towards(number: int, manifest: Manifest) -> int | None:
    """Find the manifest to read next on the way back from ``manifest`` to ``number``, whose digest it does not have:
    the oldest after ``number`` whose digest it has. None where that would be a shorter step than usual, as its writer
    knew few digests, or where ``number`` does not come before it."""
    usual = min((end for end in ends_before(manifest.number) if end > number), default=-1)
    named = [each for each in manifest.digests if each > number]
    step = min([*named, manifest.number - 1])
    return step if step <= usual else None
