#!/usr/bin/env bash
# A Debian with essential packages only, into which apt installs our packages, runs the quick start's job as an ordinary user.
# Needs root and mmdebstrap; else it is skipped (77) and says why. usage: bare_root_test.sh FOLDER_OF_PACKAGES VERSION
set -euo pipefail
packages=$1
version=$2

skip() {
  echo "left out: $1"
  exit 77
}
fail() {
  echo "bare_root_test: $1" >&2
  exit 1
}

# shellcheck source=/dev/null
release=$(. /etc/os-release && [[ $ID == debian ]] && echo "$VERSION_CODENAME") || skip "this is not Debian"
((EUID == 0)) || skip "needs root, to make a root file system"
command -v mmdebstrap >/dev/null || skip "needs mmdebstrap; scripts/setup --test installs it"
unshare --mount true 2>/dev/null || skip "root may not make a mount namespace here"
[[ -n ${FLEETRUN_OWN_MOUNTS:-} ]] || {
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  status=0
  FLEETRUN_OWN_MOUNTS=$work unshare --mount --propagation private "$0" "$@" || status=$?
  exit $status
}
work=$FLEETRUN_OWN_MOUNTS
root=$work/root

# Our packages as one more source, so that it is apt who finds what they depend on. apt reads them as an unprivileged user.
chmod 755 "$work"
mkdir "$work/ours"
cp "$packages"/*.deb "$work/ours"
(cd "$work/ours" && dpkg-scanpackages --multiversion . >Packages 2>"$work/scan.log") || fail "$(cat "$work/scan.log")"
mapfile -t names < <(sed -n 's/^Package: //p' "$work/ours/Packages")

# The host's own sources, and how its apt reaches them.
apt-config dump | grep -E '^Acquire::(https?|Check|Retries|ForceIPv)' >"$work/apt.conf" || true
sources=()
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
  [[ ! -s $file ]] || sources+=("$file")
done
mmdebstrap --mode=root --variant=essential "${names[@]/#/--include=}" --aptopt="$work/apt.conf" --dpkgopt=force-unsafe-io \
  "$release" "$root" "${sources[@]}" "deb [trusted=yes] copy://$work/ours ./" >"$work/mmdebstrap.log" 2>&1 || {
  ! grep -qE 'Could not (resolve|connect)|Temporary failure|Network is unreachable' "$work/mmdebstrap.log" ||
    skip "no network to Debian's packages"
  fail "$(cat "$work/mmdebstrap.log")"
}

mount --bind /proc "$root/proc"
mount --rbind /dev "$root/dev"
as_user=(chroot --userspec=nobody:nogroup "$root" env -i PATH=/usr/bin:/bin HOME=/tmp)
said=$("${as_user[@]}" fleetrun --version)
[[ $said == *"$version"* ]] || fail "fleetrun --version says \"$said\", wanted $version"
status=0
timeout 100 "${as_user[@]}" fleetrun --nproc_per_node=2 --device=cpu --log_dir=/tmp/log \
  /usr/share/doc/fleetrun/examples/quickstart.json output.dir=/tmp/output >"$work/run.log" 2>&1 || status=$?
((status == 0)) || {
  cat "$work/run.log" "$root/tmp/log/workerlog.0" >&2 || true
  fail "the quick start's job ended with $status"
}
grep '^test: \|accuracy\|images/s' "$work/run.log" | tail -n 1 || true
[[ -s $root/tmp/log/train.json && -s $root/tmp/output/model.safetensors ]] || fail "the job left no report or no weights"

chroot "$root" dpkg --purge "${names[@]}" >"$work/purge.log" 2>&1 || fail "$(cat "$work/purge.log")"
left=$(find "$root/usr" "$root/etc" "$root/var/lib/fleetrun"* -name '*fleetrun*' 2>/dev/null) || true
[[ -z $left ]] || fail "dpkg --purge leaves $left"
