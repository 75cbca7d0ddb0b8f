#!/usr/bin/env bash
# Verbs of ./dev as a new user runs them: in a root file system that is a bare Debian 12 and has nothing else, on a fresh clone of this tree.
#
# A prepared machine hides a missing installation step; this does not. As root: tests/bare_root.sh [--root DIR] [VERB...]
#   VERB: what to run, with its options as one word: "run --once" (the default) "endure soak --seconds 10".
#   --root DIR: where the root file system is made, and kept; one that is there is used again, with what was installed and built in it.
#     Default: a temporary directory, removed at the end.
#   MIRROR: the Debian mirror (default: this machine's).
# Changes to tracked files that are not committed are part of the clone. Installs mmdebstrap and git where they are missing.
# Exit status: 0 all went well; that of the first verb that failed; 77 if no bare Debian can be made here, with why.
set -euo pipefail

skip() {
  echo "bare root: cannot be made: $*" >&2
  exit 77
}

top="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
root="" keep=""
if [[ "${1:-}" == --root ]]; then
  root="${2:?--root needs a directory}" keep=yes
  shift 2
fi
verbs=("${@:-run --once}")

((EUID == 0)) || skip "needs root"
missing=()
for tool in mmdebstrap git; do
  command -v "$tool" >/dev/null || missing+=("$tool")
done
if ((${#missing[@]})); then
  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "${missing[@]}"; } >&2 ||
    skip "cannot install ${missing[*]}"
fi

clean() {
  ! mountpoint -q "$root/proc" || umount "$root/proc" || umount --lazy "$root/proc"
  [[ -n "$keep" ]] || rm -rf --one-file-system "$root"
}
root="${root:-$(mktemp -d /tmp/stepcast-root.XXXXXX)}"
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [[ ! -e "$root/etc/debian_version" ]]; then
  # The mirror that this machine's apt takes Debian from, and its proxies.
  # shellcheck disable=SC2016  # The dollar signs are apt's.
  mirror="${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Codename: bookworm' | head -n 1)}"
  settings="$(mktemp)"
  apt-config dump | { grep -E '^Acquire::https?::' || true; } >"$settings"
  # Three times, for a mirror is away at times; what is left of a try that failed would stop the next.
  made=""
  for wait in 10 30 ""; do
    if mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Retries "5"' --aptopt="$settings" bookworm "$root" ${mirror:+"$mirror"} >&2; then
      made=yes
      break
    fi
    [[ -n "$wait" ]] || break
    echo "bare root: mmdebstrap failed; again in $wait s" >&2
    find "$root" -mindepth 1 -xdev -delete || true
    sleep "$wait"
  done
  rm -f "$settings"
  [[ -n "$made" ]] || skip "mmdebstrap fails, with the mirror ${mirror:-of its own}"
fi

# The network as this machine has it: resolver and certificate authorities.
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
mkdir -p "$root/usr/local/share/ca-certificates"
find /usr/local/share/ca-certificates -name '*.crt' -exec cp -t "$root/usr/local/share/ca-certificates" {} +

mountpoint -q "$root/proc" || mount -t proc proc "$root/proc" || skip "cannot mount /proc in it"

# What is built in a root that is kept stays.
if [[ -d "$root/stepcast/.git" ]]; then
  git -c safe.directory='*' -C "$root/stepcast" fetch -q "$top" HEAD
  git -C "$root/stepcast" reset -q --hard FETCH_HEAD
else
  git -c safe.directory='*' clone -q --no-hardlinks "$top" "$root/stepcast"
fi
git -c safe.directory='*' -C "$top" diff --binary HEAD >"$root/changes.patch"
[[ ! -s "$root/changes.patch" ]] || git -C "$root/stepcast" apply "$root/changes.patch"
echo "bare root: Debian $(cat "$root/etc/debian_version"), $(dpkg-query --admindir="$root/var/lib/dpkg" --show | wc -l) packages," \
  "commit $(git -C "$root/stepcast" rev-parse --short HEAD)$([[ ! -s "$root/changes.patch" ]] || echo " with changes")"

environment=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8)
for name in http_proxy https_proxy no_proxy JOBS; do [[ -z "${!name:-}" ]] || environment+=("$name=${!name}"); done

for verb in "${verbs[@]}"; do
  began=$SECONDS status=0
  read -r -a words <<<"$verb"
  env -i "${environment[@]}" chroot "$root" /stepcast/dev "${words[@]}" </dev/null || status=$?
  echo "bare root: ./dev $verb: status $status after $((SECONDS - began)) s"
  ((status == 0)) || exit "$status"
done
