"""Pages and lists that are made of programs' help, of the contract, and of the pages there are."""

import os
import re
import subprocess
import tempfile
import textwrap

from google.protobuf import descriptor_pb2

from pages import GENERATED, MAX_COLUMNS, TOP, all_pages

HEAD = GENERATED + "\n"

_Field = descriptor_pb2.FieldDescriptorProto
_TYPES = {number: name.removeprefix("TYPE_").lower() for name, number in _Field.Type.items()}
_MAP = re.compile(r"<!-- pages: (\S+) -->\n.*?<!-- end of pages -->", re.S)


def pages():
    """path -> text, of every page that is generated."""
    return {"client/docs/cli.md": _command_line(), **_contract()}


def maps():
    """path -> text, of every page with a list of pages: between `<!-- pages: FOLDER -->` and `<!-- end of pages -->`."""
    found = all_pages()
    return {page.name: _MAP.sub(lambda match, page=page: _page_list(page, match[1], found), "\n".join(page.lines))
            for page in found if _MAP.search("\n".join(page.lines))}  # fmt: skip


def _page_list(page, folder, found):
    top = (page.path.parent / folder).resolve()
    below = [each for each in found if each.path.parent == top and each.path != page.path]
    lines = [_item(f"[{each.title()}]({os.path.relpath(each.path, page.path.parent)}): {each.about()}") for each in below]
    return "\n".join([f"<!-- pages: {folder} -->", *lines, "<!-- end of pages -->"])


def _wrapped(text, indent=""):
    return textwrap.fill(text, MAX_COLUMNS, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _item(text):
    return textwrap.fill("- " + text, MAX_COLUMNS, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


# The command line.


def _help(words):
    return subprocess.run([os.environ["STEPCAST"], "help", "--all", *words], capture_output=True, text=True, check=True).stdout


def _sections(text):
    """name -> its rows, each a list of lines; "" has what stands before the first."""
    sections, name = {"": []}, ""
    for line in text.split("\n"):
        if re.fullmatch(r"[A-Z].*:", line) and not line.startswith("Usage:"):
            name = line.rstrip(":")
            sections[name] = []
        elif name and line.startswith("   ") and sections[name]:
            sections[name][-1].append(line)
        elif line.startswith("  "):
            sections[name].append([line])
        elif not name:
            sections[name].append([line])
    return sections


def _commands(words=()):
    yield words
    for row in _sections(_help(words)).get("Subcommands", []):
        yield from _commands((*words, row[0].split()[0]))


def _rows(rows):
    return [line for row in rows for line in row]


def _command_line():
    shared, commands, text = {}, [], []
    for words in _commands():
        sections = _sections(_help(words))
        usage = [line for row in sections[""] for line in row if line]
        body, also = usage, {}
        for name, rows in sections.items():
            if name in ("Positionals", "Options", "Subcommands", "Examples"):
                rows = [row for row in rows if not re.match(r"  (-h,|--help)", row[0])]
                body = [*body, "", name + ":", *_rows(rows)] if rows else body
            elif name:
                also[name] = [row[0].split()[0] for row in rows]
                kept = shared.setdefault(name, {})
                for row in rows:
                    kept.setdefault(row[0].split()[0], row)
        commands.append((words, body, also))
    for words, body, also in commands:
        text += [f"## stepcast {' '.join(words)}".rstrip(), "", "```text", *body, "```", ""]
        if also:
            links = ", ".join(f"[{name}](#{_anchor(name)}){_but(shared[name], flags)}" for name, flags in also.items())
            text += [_wrapped(f"Also takes the flags of {links}."), ""]
    for name, rows in shared.items():
        text += [f"## {name}", "", "```text", *_rows(rows.values()), "```", ""]
    about = "Every command and flag, as `stepcast help --all COMMAND` prints them. Flags that several commands share stand at the end."
    return "\n".join([HEAD.rstrip(), "# Command line", "", _wrapped(about), "", *text]).rstrip("\n") + "\n"


def _but(all_flags, flags):
    """Which of a group's flags a command has, where that is not all of them."""
    left_out = [flag for flag in all_flags if flag not in flags]
    listed = flags if len(left_out) > len(flags) else left_out
    words = " and ".join(f"`{flag}`" for flag in listed) if len(listed) < 3 else ", ".join(f"`{flag}`" for flag in listed)
    return f" ({'only' if listed is flags else 'without'} {words})" if left_out else ""


def _anchor(name):
    return re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-")


# The contract.


def _contract():
    folder = TOP / "proto"
    files = sorted(path.relative_to(folder).as_posix() for path in (folder / "stepcast/v1").glob("*.proto"))
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc", "-I", str(folder), "--include_source_info", f"--descriptor_set_out={out.name}", *files], check=True)
        described = descriptor_pb2.FileDescriptorSet.FromString(out.read()).file
    pages, index = {}, []
    for file in described:
        name = file.name.rsplit("/", 1)[-1].removesuffix(".proto")
        pages[f"server/docs/api/{name}.md"] = _proto_page(file)
        for service in file.service:
            index += [f"## {service.name}", ""]
            index += [_item(f"[`{method.name}`](api/{name}.md#{method.name.lower()})") for method in service.method] + [""]
    about = (
        "The contract, from `proto/stepcast/v1`: one page for each file. Every server answers reflection, so that `buf curl` and "
        "`grpcurl` need no files."
    )
    listed = [_item(f"[{path.rsplit('/', 1)[-1].removesuffix('.md')}](api/{path.rsplit('/', 1)[-1]})") for path in pages]
    pages["server/docs/api.md"] = "\n".join([HEAD.rstrip(), "# API", "", _wrapped(about), "", *index, "## Files", "", *listed]) + "\n"
    return pages


def _proto_page(file):
    comments = {tuple(location.path): location.leading_comments for location in file.source_code_info.location}

    def paragraphs(path, indent=""):
        text = comments.get(tuple(path), "").replace("\n ", "\n").strip()
        return [_wrapped(" ".join(part.split()), indent) for part in re.split(r"\n\s*\n", text) if part.strip()]

    lines = [HEAD.rstrip(), f"# {file.name}", "", f"Package `{file.package}`."]
    for index, service in enumerate(file.service):
        lines += ["", f"## {service.name}", ""] + _spaced(paragraphs([6, index]))
        for number, method in enumerate(service.method):
            streams = [("stream " if streamed else "") + kind.rsplit(".", 1)[-1]
                       for streamed, kind in ((method.client_streaming, method.input_type), (method.server_streaming, method.output_type))]  # fmt: skip
            lines += ["", f"### {method.name}", "", _wrapped(f"`{streams[0]}` to `{streams[1]}`.")]
            lines += _spaced(["", *paragraphs([6, index, 2, number])])
    for index, message in enumerate(file.message_type):
        lines += _message(message, [4, index], message.name, paragraphs)
    for index, enum in enumerate(file.enum_type):
        lines += _enum(enum, [5, index], enum.name, paragraphs)
    return "\n".join(lines).rstrip("\n") + "\n"


def _spaced(parts):
    return [line for part in parts for line in ((part, "") if part else ("",))]


def _message(message, path, name, paragraphs):
    lines = ["", f"## {name}", "", *_spaced(paragraphs(path))]
    if lines[-1] == "":
        lines.pop()
    entries = {nested.name for nested in message.nested_type if nested.options.map_entry}
    if message.field:
        lines.append("")
    for index, field in enumerate(message.field):
        kind = field.type_name.rsplit(".", 1)[-1] or _TYPES[field.type]
        if kind in entries:
            kind = "map"
        elif field.label == _Field.LABEL_REPEATED:
            kind = "repeated " + kind
        elif field.proto3_optional:
            kind = "optional " + kind
        elif field.HasField("oneof_index"):
            kind += f", of {message.oneof_decl[field.oneof_index].name}"
        text = " ".join(" ".join(paragraphs([*path, 2, index])).split())
        lines.append(_item(f"`{field.name}` ({kind}){': ' + text if text else ''}"))
    for index, nested in enumerate(message.nested_type):
        if not nested.options.map_entry:
            lines += _message(nested, [*path, 3, index], f"{name}.{nested.name}", paragraphs)
    for index, enum in enumerate(message.enum_type):
        lines += _enum(enum, [*path, 4, index], f"{name}.{enum.name}", paragraphs)
    return lines


def _enum(enum, path, name, paragraphs):
    lines = ["", f"## {name}", "", *_spaced(paragraphs(path))]
    if lines[-1] == "":
        lines.pop()
    lines.append("")
    for index, value in enumerate(enum.value):
        text = " ".join(" ".join(paragraphs([*path, 2, index])).split())
        lines.append(_item(f"`{value.name}`{': ' + text if text else ''}"))
    return lines
