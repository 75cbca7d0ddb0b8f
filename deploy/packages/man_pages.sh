#!/usr/bin/env bash
# Manual pages of what the programs' own --help says, by help2man: stepcastd(8), stepcast(1), and one for each of its commands, stepcast-job-start(1);
# and of kubectl's plugin.
#
# Usage: man_pages.sh DIRECTORY STEPCAST STEPCASTD KUBECTL-STEPCAST. SOURCE_DATE_EPOCH: when the pages are from (default: now).
set -euo pipefail

readonly directory="$1" stepcast="$2" stepcastd="$3" plugin="$4"
rm -rf "$directory"
mkdir -p "$directory"

# help PROGRAM [COMMAND...]: as it is on any machine; of stepcast's commands with all flags.
help() { env -i PATH=/usr/bin:/bin HOME='~' "$@" "$(flag "$@")"; }
flag() { if [[ "$1" == "$stepcast" && "${2:-}" != --version ]]; then echo --help-all; else echo --help; fi; }

# page SECTION SEE-ALSO PROGRAM [COMMAND...]
page() {
  local section="$1" see_also="$2" version about name
  shift 2
  name="$(IFS=- && echo "${*##*/}")"
  version="$(help "$1" --version)"
  # The first line of help says it, to its first full stop.
  about="$(help "$@" | sed -n '1{s/[.:] .*//;s/\.$//;p}')"
  # The command as a shell reads it: help2man runs it by one.
  env -i PATH=/usr/bin:/bin HOME='~' ${SOURCE_DATE_EPOCH:+"SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH"} \
    help2man --no-info --help-option="$(flag "$@")" --section="$section" --name="$about" --source="$version" --version-string="$name ${version##* }" \
    --include=<(printf '[SEE ALSO]\n%s\n' "$see_also") "$*" |
    # Examples keep their lines.
    sed '/^\.SH EXAMPLES/,/^\.SH "SEE/s/^\.IP$/&\n.nf/' | gzip -9n >"$directory/$name.$section.gz"
}

# commands PROGRAM [COMMAND...]: a page for it, and for all below.
commands() {
  local below name see_also="" command
  mapfile -t below < <(help "$@" | sed -n '/^Subcommands:$/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p')
  name="$(IFS=- && echo "${*##*/}")"
  (($# == 1)) || see_also="${name%-*}(1), "
  for command in "${below[@]}"; do see_also+="$name-$command(1), "; done
  page 1 "${see_also}stepcastd(8)" "$@"
  for command in "${below[@]}"; do commands "$@" "$command"; done
}

commands "$stepcast"
page 8 "stepcast(1)" "$stepcastd"
env -i PATH=/usr/bin:/bin ${SOURCE_DATE_EPOCH:+"SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH"} \
  help2man --no-info --section=1 --name="how many workers training jobs in Kubernetes should get" --source="$(help "$stepcast" --version)" \
  --version-string="kubectl-stepcast $(help "$stepcast" --version | sed 's/.* //')" --include=<(printf '[SEE ALSO]\nstepcast-recommend(1)\n') "$plugin" |
  gzip -9n >"$directory/kubectl-stepcast.1.gz"
