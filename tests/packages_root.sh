#!/usr/bin/env bash
# The Debian packages of `./dev package` in a bare Debian 12: installed, started by their unit's command, asked, upgraded over a store with a profile,
# removed and purged; the plugin of Slurm, in a slurmctld; then the client library, with a compiler.
#
# Usage, as root: tests/packages_root.sh [ROOT]
# ROOT: where to make the root file system (default: a temporary directory, removed at the end); an existing one is used again as it is.
# PACKAGES: directory of the packages (default: what `./dev package` makes now). MIRROR: Debian mirror (default: mmdebstrap's).
# STEPS: what to do, separated by commas (default: "lint,server,slurm,library").
# Exit status: 0 all holds, 77 skipped, with what is missing, 1 something does not hold. Each claim that holds is printed.
# shellcheck disable=SC2016  # What is in single quotes is for the root, or a format of dpkg-query.
set -euo pipefail

skip() {
  echo "skipped: $*"
  exit 77
}
holds() { echo "holds: $*"; }
die() {
  echo "FAILED: $*" >&2
  exit 1
}

((EUID == 0)) || skip "needs root"
for tool in mmdebstrap chroot mount unshare nsenter ip dpkg-deb git; do
  command -v "$tool" >/dev/null || skip "needs $tool"
done

top="$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)"
keep="${1:+yes}"
root="${1:-$(mktemp -d /tmp/stepcast-packages.XXXXXX)}"
IFS=, read -r -a steps <<<"${STEPS:-lint,server,slurm,library}"
work="$(mktemp -d)"
server="" network=""

clean() {
  [[ $? == 0 || ! -s "$work/server.log" ]] || sed 's/^/stepcastd: /' "$work/server.log" >&2
  # By their numbers, and nothing else: the server first, then what holds its network.
  stop_server || true
  [[ -z "$network" ]] || kill "$network" 2>/dev/null || true
  ! mountpoint -q "$root/proc" || umount "$root/proc"
  rm -rf "$work"
  [[ -n "$keep" ]] || rm -rf --one-file-system "$root"
}
trap clean EXIT

# within COMMAND...: in the root, with this machine's network.
within() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
# alone COMMAND...: in the root, on a loopback of its own: every port is free, and nobody else is reached.
alone() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 nsenter --net="/proc/$network/ns/net" chroot "$root" "$@"; }

make_root() {
  if [[ ! -e "$root/etc/debian_version" ]]; then
    mmdebstrap --quiet --variant=minbase bookworm "$root" ${MIRROR:+"$MIRROR"} >&2 || skip "mmdebstrap cannot reach a Debian mirror"
  fi
  # The network as this machine has it: resolver, apt's proxies, certificate authorities.
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  grep -lsr '^Acquire' /etc/apt/apt.conf.d | xargs -r cp -t "$root/etc/apt/apt.conf.d"
  mkdir -p "$root/usr/local/share/ca-certificates"
  find /usr/local/share/ca-certificates -name '*.crt' -exec cp -t "$root/usr/local/share/ca-certificates" {} +
  mount -t proc proc "$root/proc" || skip "cannot mount /proc in the root"
  within apt-get -qq update >&2 || skip "apt in the root cannot reach a Debian mirror"
  echo "bare root: Debian $(cat "$root/etc/debian_version"), $(dpkg-query --admindir="$root/var/lib/dpkg" --show | wc -l) packages"
}

make_packages() {
  if [[ -z "${PACKAGES:-}" ]]; then
    "$top/dev" package --out "$work/packages" >/dev/null || die "./dev package failed"
    PACKAGES="$work/packages"
  fi
  rm -rf "$root/packages"
  mkdir "$root/packages"
  local name found
  for name in stepcast stepcast-server stepcast-slurm libstepcast-dev; do
    found=("$PACKAGES/${name}"_*.deb)
    [[ ${#found[@]} == 1 && -f "${found[0]}" ]] || die "there is not one package of $name in $PACKAGES"
    cp "${found[0]}" "$root/packages/$name.deb"
    # The same again, as a later version.
    dpkg-deb --raw-extract "${found[0]}" "$work/$name"
    sed -i 's/^Version: .*/&+later/' "$work/$name/DEBIAN/control"
    dpkg-deb --root-owner-group --build "$work/$name" "$root/packages/$name-later.deb" >/dev/null
    rm -rf "${work:?}/$name"
    echo "package: ${found[0]##*/}, $(stat --format %s "${found[0]}") bytes; Depends: $(dpkg-deb --field "${found[0]}" Depends)"
  done
}

# quietly COMMAND...: shows what it printed, which stays in $work/log, only if it fails.
quietly() {
  "$@" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    die "$*"
  }
}

# apt_get VERB NAME...
apt_get() { quietly within apt-get -y --no-install-recommends -o DPkg::Lock::Timeout=600 "$@"; }

version_of() { within dpkg-query --show --showformat='${db:Status-Status} ${Version}' "$1" 2>/dev/null || true; }

unit_setting() { sed -n "s/^$1=//p" "$root"/lib/systemd/system/stepcastd.service; }

# By the unit's command, as its user, in its directory, with its mask and without rights: systemd itself does not run in a root like this.
start_server() {
  local command line count=0
  read -r -a command <<<"$(unit_setting ExecStart)"
  exec 3< <(exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin nsenter --net="/proc/$network/ns/net" chroot "$root" setpriv --reuid "$(unit_setting User)" \
    --regid "$(unit_setting Group)" --init-groups --no-new-privs --inh-caps=-all --bounding-set=-all \
    sh -c 'cd "$1" && umask "$2" && shift 2 && exec "$@"' sh "$(unit_setting WorkingDirectory)" "$(unit_setting UMask)" "${command[@]}" 2>"$work/server.log")
  server=$!
  while ((count < 2)); do
    read -r -t 60 line <&3 || die "the server does not start by: ${command[*]}"
    [[ "$line" != listening* ]] || count=$((count + 1))
  done
  # It listens before it is ready.
  for ((count = 0; count < 300; ++count)); do
    ! alone bash -c 'exec 2>/dev/null 3<>/dev/tcp/127.0.0.1/9464 && printf "GET /readyz HTTP/1.0\r\n\r\n" >&3 && grep -q " 200 " <&3' || break
    sleep 0.1
  done
  ((count < 300)) || die "the server does not become ready"
  [[ "$(sed -n 's/^Uid:\t\([0-9]*\)\t.*/\1/p' "/proc/$server/status")" == "$(within id -u "$(unit_setting User)")" ]] || die "the server has another user"
  holds "${command[*]}: serves as the user $(unit_setting User)"
}

# Its exit status; no server is none that failed.
stop_server() {
  [[ -n "$server" ]] || return 0
  local stopped=0 process="$server"
  server=""
  kill -TERM "$process" 2>/dev/null || true
  wait "$process" || stopped=$?
  exec 3<&-
  return "$stopped"
}

lint_step() {
  command -v lintian >/dev/null || die "the step lint needs lintian"
  lintian --allow-root --no-cfg --tag-display-limit 0 "$root"/packages/{stepcast,stepcast-server,stepcast-slurm,libstepcast-dev}.deb >"$work/lintian" 2>&1 || true
  cat "$work/lintian"
  ! grep -qv '^[EWIPOXN]: ' "$work/lintian" || die "lintian itself failed"
  ! grep -q '^E:' "$work/lintian" || die "lintian finds errors"
  holds "lintian finds no error, and $(grep -c '^W:' "$work/lintian" || true) warnings"
}

server_step() {
  local data=/var/lib/stepcast file=/etc/stepcast/stepcastd.yaml before
  unshare --net sleep infinity &
  network=$!
  # Until it has a namespace of its own.
  until [[ "$(readlink "/proc/$network/ns/net")" != "$(readlink /proc/self/ns/net)" ]]; do sleep 0.1; done
  nsenter --net="/proc/$network/ns/net" ip link set lo up
  # What an earlier run left in a root that is used again.
  within dpkg --purge stepcast stepcast-server libstepcast-dev >/dev/null 2>&1 || die "dpkg cannot purge what was there"
  rm -rf "${root:?}$data"

  ! within sh -c 'command -v c++ g++ gcc cc clang' || die "a compiler is in the root, and may bring what the packages lack"
  apt_get install /packages/stepcast.deb /packages/stepcast-server.deb
  ! within sh -c 'command -v c++ g++ gcc cc clang' || die "the packages bring a compiler"
  holds "both are there: $(version_of stepcast-server)"
  [[ "$(within stat --format '%U:%G %a' "$data")" == "stepcast:stepcast 750" ]] || die "$data is not the server's own: $(within stat --format '%U:%G %a' "$data")"
  [[ "$(within dpkg-query --show --showformat='${Conffiles}' stepcast-server)" == *" $file "* ]] || die "$file is no conffile"
  quietly within bash -c 'source /usr/share/bash-completion/completions/stepcast && complete -p stepcast'
  quietly within bash -c 'cmp /usr/share/bash-completion/completions/stepcast <(stepcast completion bash)'
  quietly within bash -c 'cmp /usr/share/zsh/vendor-completions/_stepcast <(stepcast completion zsh)'
  quietly within bash -c 'cmp /usr/share/fish/vendor_completions.d/stepcast.fish <(stepcast completion fish)'
  quietly within kubectl-stepcast --help
  local page
  for page in man1/stepcast.1 man1/stepcast-predict.1 man1/stepcast-job-start-order.1 man1/kubectl-stepcast.1 man8/stepcastd.8; do
    [[ "$(zcat "$root/usr/share/man/$page.gz")" == *".SH OPTIONS"* ]] || die "$page says nothing of options"
  done
  holds "$data, $file, $(find "$root/usr/share/man" -name 'stepcast*' | wc -l) pages of the manual and the completion are there"

  start_server
  alone stepcast profile upload /usr/share/doc/stepcast/examples/alexnet_64.profile.json --id alexnet-64 | head -1
  alone stepcast predict alexnet-64 --workers 1-4 --order recorded | tee "$work/before"
  stop_server || die "the server stopped with status $?"
  holds "stepcast asks it, and it stops with status 0"

  echo "# the administrator's" >>"$root$file"
  apt_get install /packages/stepcast-later.deb /packages/stepcast-server-later.deb
  [[ "$(version_of stepcast-server)" == *+later && "$(version_of stepcast)" == *+later ]] || die "not upgraded: $(version_of stepcast-server)"
  [[ "$(tail -1 "$root$file")" == "# the administrator's" ]] || die "the upgrade changed $file"
  start_server
  alone stepcast predict alexnet-64 --workers 1-4 --order recorded >"$work/after"
  cmp "$work/before" "$work/after" || die "the upgraded server answers otherwise"
  stop_server || die "the server stopped with status $?"
  holds "upgraded, $(version_of stepcast-server): the profile, the answer and the administrator's settings are the same"

  before="$(within find "$data" -type f -exec sha256sum {} +)"
  [[ -n "$before" ]] || die "$data is empty"
  apt_get remove stepcast stepcast-server
  ! within sh -c 'command -v stepcast stepcastd' || die "not removed"
  [[ "$(within find "$data" -type f -exec sha256sum {} +)" == "$before" && -f "$root$file" ]] || die "the removal changed $data or $file"
  holds "removed: data and settings stay, to the byte"
  apt_get purge stepcast stepcast-server
  grep "$data" "$work/log" || die "the purge does not say where the profiles are"
  [[ ! -e "$root/etc/stepcast" && "$(within find "$data" -type f -exec sha256sum {} +)" == "$before" ]] || die "the purge left settings, or changed $data"
  holds "purged: settings are gone, data stays"

  apt_get install /packages/stepcast.deb /packages/stepcast-server.deb
  start_server
  alone stepcast profile list | tee "$work/list"
  grep -q profiles/alexnet-64 "$work/list" || die "the profile is lost"
  stop_server || die "the server stopped with status $?"
  holds "installed again: the profile is there"
}

# A slurmctld that has the plugin says so in its log, before it finds no munged.
slurm_step() {
  local plugin=/usr/lib/x86_64-linux-gnu/slurm-wlm/job_submit_stepcast.so
  within dpkg --purge stepcast-slurm >/dev/null 2>&1 || die "dpkg cannot purge what was there"
  apt_get install /packages/stepcast-slurm.deb
  [[ "$(within dpkg-query --show --showformat='${Conffiles}' stepcast-slurm)" == *" /etc/slurm/stepcast.yaml "* ]] || die "its settings are no conffile"
  ! within ldd "$plugin" | grep "not found" || die "the plugin lacks a library"
  mkdir -p "$root/tmp/slurm"
  printf '%s\n' ClusterName=bare "SlurmctldHost=$(hostname -s)(127.0.0.1)" SlurmUser=root StateSaveLocation=/tmp/slurm SlurmctldPidFile=/tmp/slurm/pid \
    MpiDefault=none ProctrackType=proctrack/linuxproc JobSubmitPlugins=stepcast "NodeName=$(hostname -s) CPUs=1" "PartitionName=all Nodes=ALL Default=YES" \
    >"$root/tmp/slurm/slurm.conf"
  within timeout 10 slurmctld -D -f /tmp/slurm/slurm.conf >"$work/slurmctld" 2>&1 || true
  grep "job_submit/stepcast: asks 127.0.0.1:50051, and advises" "$work/slurmctld" || { cat "$work/slurmctld" >&2; die "slurmctld does not have the plugin"; }
  apt_get purge stepcast-slurm
  [[ ! -e "$root$plugin" && ! -e "$root/etc/slurm/stepcast.yaml" ]] || die "the purge left something"
  holds "slurmctld has the plugin, and its removal leaves nothing"
}

library_step() {
  apt_get install /packages/libstepcast-dev.deb g++ cmake make
  rm -rf "$root/outside"
  cp -r "$top/tests/client/package/project" "$root/outside"
  cp "$top/tests/data/testbed/alexnet_64.profile.json" "$root/outside/profile.json"
  quietly within cmake -S /outside -B /outside/build
  quietly within cmake --build /outside/build
  [[ "$(within /outside/build/outside /outside/profile.json 127.0.0.1:1 | tee -a /dev/stderr)" == *" alexnet_64 1"*UNAVAILABLE ]] || die "the outside program printed something else"
  holds "a project outside finds the package, builds and runs"
}

make_root
make_packages
for step in "${steps[@]}"; do
  case "$step" in
    lint | server | slurm | library) "${step}_step" ;;
    *) die "no such step: $step" ;;
  esac
done
