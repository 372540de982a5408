#!/usr/bin/env bash
# What cpack makes are good Debian packages; they stay in FOLDER for bare_root_test.
# usage: package_test.sh CPACK BUILD_DIR VERSION FOLDER
set -euo pipefail
cpack=$1
build=$2
version=$3
folder=$4
architecture=$(dpkg --print-architecture)

fail() {
  echo "package_test: $1" >&2
  exit 1
}

rm -rf "$folder"
mkdir -p "$folder"
"$cpack" --config "$build/CPackConfig.cmake" -B "$folder" >"$folder/cpack.log" 2>&1 || fail "$(cat "$folder/cpack.log")"
rm -r "$folder/_CPack_Packages"

field() { # NAME PACKAGE
  dpkg-deb --field "$folder/$2_${version}_$architecture.deb" "$1"
}
files() { # PACKAGE
  dpkg-deb --fsys-tarfile "$folder/$1_${version}_$architecture.deb" | tar -t | grep -v '/$' | sed 's|^\./||'
}
nvidia='cuda|cublas|cudnn|nccl|nvidia'

depends=$(field Depends fleetrun)
for library in 'libc6 \(>=' libdnnl2 libgloo0 libprotobuf32 libsodium23; do
  grep -qE "$library" <<<"$depends" || fail "fleetrun depends on $depends, wanted $library, too"
done
! grep -qE "$nvidia" <<<"$depends" || fail "fleetrun depends on $depends, wanted nothing of NVIDIA"

files fleetrun >"$folder/files"
for file in usr/bin/fleetrun usr/libexec/fleetrun/fleetrun-worker usr/share/man/man1/fleetrun.1.gz \
  usr/share/bash-completion/completions/fleetrun usr/share/zsh/vendor-completions/_fleetrun \
  usr/share/fish/vendor_completions.d/fleetrun.fish usr/share/doc/fleetrun/copyright \
  usr/share/doc/fleetrun/changelog.gz usr/share/doc/fleetrun/examples/quickstart.json; do
  grep -qxF "$file" "$folder/files" || fail "fleetrun has no $file"
done
strangers=$(grep '\.so' "$folder/files" | grep -vE '^usr/lib/([^/]+/)?fleetrun/libfleetrun_[a-z]+\.so$') || true
[[ -z $strangers ]] || fail "fleetrun has $strangers, wanted libraries of ours only, in a folder of their own"

plugin=$build/lib/libfleetrun_cuda.so
if [[ -f $plugin ]]; then
  depends=$(field Depends fleetrun-cuda)
  [[ $depends == "fleetrun (= $version), "* ]] || fail "fleetrun-cuda depends on $depends, wanted fleetrun (= $version) first"
  ! grep -qE "$nvidia" <<<"$depends" || fail "fleetrun-cuda depends on $depends, wanted nothing of NVIDIA"
  description=$(field Description fleetrun-cuda)
  needed=$(readelf -d "$plugin" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -E "$nvidia" | grep -v fleetrun)
  [[ -n $needed ]] || fail "$plugin needs no library of NVIDIA"
  for library in $needed; do
    grep -qF "$library" <<<"$description" || fail "the description of fleetrun-cuda does not name $library"
  done
  extra=$(files fleetrun-cuda | grep -vE '^usr/(lib/([^/]+/)?fleetrun/libfleetrun_cuda\.so|share/doc/fleetrun-cuda/)') || true
  [[ -z $extra ]] || fail "fleetrun-cuda has $extra, wanted the plug-in alone"
elif compgen -G "$folder/fleetrun-cuda*" >/dev/null; then
  fail "there is a package of the CUDA plug-in, which is not built"
fi

if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error,warning "$folder"/*.deb >"$folder/lintian.log" 2>&1 || fail "lintian: $(cat "$folder/lintian.log")"
else
  echo "package_test: without lintian, which is not installed"
fi
