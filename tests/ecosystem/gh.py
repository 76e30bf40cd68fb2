"""What the scripts of docs/ci/github.yml need of `gh`: it answers from the file named by GITHUB_STATE,
and writes there what it was told to write.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


def gh(words: list[str]) -> object:
    """Do what `gh` does, and return what it prints before a query."""
    assert os.environ["GH_TOKEN"]
    state = json.loads(Path(os.environ["GITHUB_STATE"]).read_text())
    if words[:2] == ["run", "list"]:
        return state["runs"]
    if words[:2] == ["run", "download"]:
        return _download(state, words[words.index("--name") + 1])
    (url,) = [word for word in words if word.startswith("repos/")]
    path = url.removeprefix("repos/team/fleet/")
    if "--method" in words:
        body = words[words.index("--field") + 1].removeprefix("body=@")
        return _comment(state, path, words[words.index("--method") + 1], Path(body).read_text())
    return _got(state, path)


def _download(state: dict, name: str) -> None:
    kept = [each["id"] for each in state["artifacts"] if each["name"] == name]
    if not kept:
        sys.exit("no valid artifacts found to download")
    shutil.copytree(Path(state["kept"], str(kept[-1])), ".", dirs_exist_ok=True)


def _comment(state: dict, path: str, method: str, body: str) -> None:
    if method == "PATCH":
        number = path.removeprefix("issues/comments/")
        (comment,) = [each for each in state["comments"] if str(each["id"]) == number]
        comment["body"] = body
    else:
        number = len(state["comments"]) + 1
        state["comments"].append({"id": number, "user": {"type": "Bot"}, "body": body})
    Path(os.environ["GITHUB_STATE"]).write_text(json.dumps(state))


def _got(state: dict, url: str) -> object:
    path, query = urlsplit(url)[2:4]
    if path.startswith("commits/"):
        return state["pulls"].get(path.split("/")[1], [])
    if path == "actions/artifacts":
        (name,) = parse_qs(query)["name"]
        return {"artifacts": [each for each in state["artifacts"] if each["name"] == name]}
    if path.endswith("/zip"):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for each in Path(state["kept"], path.split("/")[2]).iterdir():
                archive.write(each, each.name)
        sys.stdout.buffer.write(packed.getvalue())
        return None
    assert path.endswith("/comments")
    return state["comments"]


def main(words: list[str]) -> None:
    found = gh(words)
    if found is not None:
        query = words[words.index("--jq") + 1]
        subprocess.run(
            ["jq", "--raw-output", query], input=json.dumps(found), text=True, check=True
        )


if __name__ == "__main__":
    main(sys.argv[1:])
