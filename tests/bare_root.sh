#!/usr/bin/env bash
# What a fresh clone does on a bare Debian 12: `./dev run --once`, then `./dev test`, in a root file system that has nothing else.
#
# A prepared machine hides a missing install step; this does not. Usage, as root: tests/bare_root.sh [ROOT]
# ROOT: where to make the root file system (default: a temporary directory, removed at the end); an existing one is used again as it is.
# MIRROR: Debian mirror (default: mmdebstrap's). VERBS: what to run, separated by commas (default: "run --once,test").
# Exit status: 0 all went well, 77 skipped, with what is missing; else that of the first verb that failed.
set -euo pipefail

skip() {
  echo "skipped: $*"
  exit 77
}

((EUID == 0)) || skip "needs root"
for tool in mmdebstrap git chroot mount; do
  command -v "$tool" >/dev/null || skip "needs $tool"
done

top="$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)"
keep="${1:+yes}"
root="${1:-$(mktemp -d /tmp/stepcast-root.XXXXXX)}"
IFS=, read -r -a verbs <<<"${VERBS:-run --once,test}"

clean() {
  ! mountpoint -q "$root/proc" || umount "$root/proc"
  [[ -n "$keep" ]] || rm -rf --one-file-system "$root"
}
trap clean EXIT

if [[ ! -e "$root/etc/debian_version" ]]; then
  mmdebstrap --quiet --variant=minbase bookworm "$root" ${MIRROR:+"$MIRROR"} >&2 || skip "mmdebstrap cannot reach a Debian mirror"
fi

# The network as this machine has it: resolver, apt's proxies, certificate authorities.
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
grep -lsr '^Acquire' /etc/apt/apt.conf.d | xargs -r cp -t "$root/etc/apt/apt.conf.d"
mkdir -p "$root/usr/local/share/ca-certificates"
find /usr/local/share/ca-certificates -name '*.crt' -exec cp -t "$root/usr/local/share/ca-certificates" {} +

mount -t proc proc "$root/proc" || skip "cannot mount /proc in the root"

rm -rf "$root/stepcast"
git clone -q --no-hardlinks "$top" "$root/stepcast"
# The clone is of the last commit: what is not committed is not part of the trial.
echo "bare root: Debian $(cat "$root/etc/debian_version"), $(dpkg-query --admindir="$root/var/lib/dpkg" --show | wc -l) packages, commit $(git -C "$root/stepcast" rev-parse --short HEAD)"

for verb in "${verbs[@]}"; do
  began=$SECONDS status=0
  read -r -a words <<<"$verb"
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 chroot "$root" /stepcast/dev "${words[@]}" || status=$?
  echo "bare root: ./dev $verb: status $status after $((SECONDS - began)) s"
  ((status == 0)) || exit "$status"
done
