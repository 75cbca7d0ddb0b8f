#!/usr/bin/env bash
# Promises of the image, tried on one that was built: deploy/image_check.sh [IMAGE], as root, with buildah; BUILDAH may hold its options, too.
#
# The image runs by its own command, user and environment, in namespaces of its own, without a network and without rights, and may write only where
# the README says. Its server serves, drains and keeps; its command line works; nothing is in it that compiles. Prints each claim that holds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly image="${1:-stepcast:0.1.0}"
read -r -a buildah <<<"${BUILDAH:-buildah --storage-driver vfs}"

holds() { echo "holds: $*"; }
die() {
  echo "FAILED: $*" >&2
  exit 1
}

# of_image KEY: its configured strings, one a line.
of_image() {
  "${buildah[@]}" inspect --type image "$image" | /usr/bin/python3 -c '
import json, sys
value = json.load(sys.stdin)["OCIv1"]["config"].get(sys.argv[1]) or []
print("\n".join([value] if isinstance(value, str) else value))' "$1"
}

# From here on everything is seen by nobody else and goes with this process.
if [[ -z "${STEPCAST_IMAGE_ROOT:-}" ]]; then
  ((EUID == 0)) || die "mounting an image's root needs root"
  container="$("${buildah[@]}" from --pull-never "$image")"
  trap '"${buildah[@]}" rm "$container" >/dev/null' EXIT
  STEPCAST_IMAGE_ROOT="$("${buildah[@]}" mount "$container")"
  export STEPCAST_IMAGE_ROOT
  STEPCAST_IMAGE_COMMAND="$(of_image Entrypoint && of_image Cmd)" STEPCAST_IMAGE_USER="$(of_image User)" STEPCAST_IMAGE_ENV="$(of_image Env)" \
    unshare --mount --net --pid --fork --kill-child --mount-proc deploy/image_check.sh "$image"
  exit
fi

readonly root="$STEPCAST_IMAGE_ROOT" user="${STEPCAST_IMAGE_USER%:*}" group="${STEPCAST_IMAGE_USER#*:}"
mapfile -t image_command <<<"$STEPCAST_IMAGE_COMMAND"
mapfile -t image_environment <<<"$STEPCAST_IMAGE_ENV"

# as_image WORD...: as the image's user, with its environment and no rights.
as_image() {
  exec env -i "${image_environment[@]}" chroot "$root" setpriv --reuid "$user" --regid "$group" --clear-groups --no-new-privs --bounding-set=-all \
    --inh-caps=-all -- "$@"
}

mount_root() {
  local device
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount -t tmpfs -o mode=0755 tmpfs "$root/dev"
  for device in null zero random urandom; do
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
  done
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
  mount -t tmpfs -o "mode=0700,uid=$user,gid=$group" tmpfs "$root/var/lib/stepcast"
  mount -o remount,bind,ro "$root"
}

check_content() {
  local program packages
  for program in cc c++ gcc g++ clang ld as make cmake ninja git npm protoc; do
    if compgen -G "$root/usr/*bin/$program" || compgen -G "$root/usr/local/*bin/$program"; then die "the image has $program"; fi
  done
  # shellcheck disable=SC2016  # dpkg's variable, not the shell's.
  packages="$(chroot "$root" dpkg-query --show --showformat='${Package}\n' | grep -E -- '-dev$|^g\+\+|^gcc-[0-9]+$|^cpp' || true)"
  [[ -z "$packages" && ! -e "$root/src" ]] || die "the image has what it was built with: $packages"
  holds "nothing in it compiles, and no sources are left"
  holds "it has $(($(du --summarize --one-file-system --block-size=1 "$root" | cut -f1) / 1000000)) MB"
}

check_rights() {
  local status line
  [[ "$user" =~ ^[1-9][0-9]*$ ]] || die "the image's user is not a number other than 0: $user"
  status="$(as_image cat /proc/self/status)"
  for line in "Uid:\s+$user\s+$user\s+$user\s+$user" "CapEff:\s+0+" "CapBnd:\s+0+" "NoNewPrivs:\s+1"; do
    grep -qE "^$line$" <<<"$status" || die "it has rights: no line $line in $status"
  done
  if (as_image sh -c ': >/usr/local/bin/written || : >/etc/written') 2>/dev/null; then die "its root can be written"; fi
  holds "it runs as $user:$group, without capabilities, and its root is read-only"
}

# Starts the image's own command and waits until it is ready; sets `server`.
start() {
  local attempt
  (as_image "${image_command[@]}") >"$log" 2>&1 &
  server=$!
  for attempt in {1..300}; do
    # By the very command by which compose asks.
    if (as_image "${healthcheck[@]}") >/dev/null 2>&1; then return 0; fi
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  die "the server was not ready after $attempt attempts: $(<"$log")"
}

stop() {
  local status=0
  kill -TERM "$server"
  wait "$server" || status=$?
  ((status == 0)) || die "the server stopped with status $status: $(<"$log")"
}

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
mapfile -t healthcheck < <(/usr/bin/python3 -c '
import sys, yaml
print("\n".join(yaml.safe_load(open("deploy/compose.yaml"))["services"]["stepcast"]["healthcheck"]["test"][1:]))')
ip link set lo up
mount_root
check_content
check_rights

start
holds "it starts by its own command, \`${image_command[*]}\`, and compose finds it healthy"
cp deploy/samples/alexnet_64.profile.json "$root/tmp/sample.json"
(as_image stepcast --server 127.0.0.1:50051 profile upload /tmp/sample.json --id sample) >/dev/null || die "an upload failed"
first="$(as_image stepcast --server 127.0.0.1:50051 predict sample --workers 1-4)" || die "a prediction failed"
[[ "$(wc -l <<<"$first")" -ge 5 ]] || die "the command line predicted: $first"
holds "its command line uploads and predicts"

# Long enough to be under way when the signal comes.
running='exec 3<>/dev/tcp/127.0.0.1/9464; printf "GET /metrics HTTP/1.0\r\n\r\n" >&3; grep -q "^stepcast_jobs_running{pool=\"simulation\"} 1" <&3'
(as_image stepcast --server 127.0.0.1:50051 predict sample --workers 16 --steps 10000 --replications 1) >"$root/tmp/late" 2>&1 &
late=$!
until (as_image bash -c "$running"); do
  kill -0 "$late" 2>/dev/null || die "the long call ended before it was seen to run: $(<"$root/tmp/late")"
done
stop
wait "$late" || die "a call under way was not answered: $(<"$root/tmp/late")"
holds "on SIGTERM it answers the call under way and ends with status 0"

start
[[ "$(as_image stepcast --server 127.0.0.1:50051 predict sample --workers 1-4)" == "$first" ]] || die "it does not answer as before"
stop
holds "started again it still has what was uploaded, and answers the same"
