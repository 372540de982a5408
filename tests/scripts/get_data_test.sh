#!/usr/bin/env bash
# scripts/get_data on archives good and bad. usage: get_data_test.sh SOURCE_DIR
set -euo pipefail
source_dir=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/project/scripts" "$work/in"
cp "$source_dir/scripts/get_data" "$work/project/scripts/"
cd "$work/in"
data=$work/project/data

fail() {
  echo "get_data_test: $1" >&2
  exit 1
}

# expect CODE TEXT ARGUMENTS...: the script ends with CODE and its output contains TEXT
expect() {
  local code=$1 text=$2 output status=0
  shift 2
  output=$("$work/project/scripts/get_data" "$@" 2>&1) || status=$?
  [[ $status == "$code" ]] || fail "get_data $*: ended with $status, wanted $code: $output"
  [[ $output == *"$text"* ]] || fail "get_data $*: said \"$output\", wanted \"$text\""
}

mkdir -p train/cat several/images whole
echo cat >train/cat/0.jpg
echo list >several/train.txt
echo photo >several/images/a.JPEG
echo one >whole/one
tar -czf pets-jpeg.tar.gz train
tar -cf sample-2.tar -C several images train.txt
tar -czf whole.tgz whole

# an archive goes into a folder of its name, once
expect 0 "unpacked 1 files to data/pets-jpeg" pets-jpeg.tar.gz
[[ $(cat "$data/pets-jpeg/train/cat/0.jpg") == cat ]] || fail "pets-jpeg is not unpacked"
expect 0 "there already" pets-jpeg.tar.gz
expect 0 "unpacked 2 files to data/sample-2" sample-2.tar
[[ -f $data/sample-2/images/a.JPEG && -f $data/sample-2/train.txt ]] || fail "sample-2 is not unpacked"

# a top folder of that name is not doubled
expect 0 "data/whole" whole.tgz
[[ $(cat "$data/whole/one") == one ]] || fail "whole/one is not where it belongs"

# command lines and files that are not archives
expect 0 "usage:" --help
expect 2 "wanted one archive"
expect 2 "wanted a name that ends in .tar" pets.zip
expect 66 "absent.tar: no such file" absent.tar
mkdir folder.tar
expect 66 "folder.tar is not a file" folder.tar
echo "no archive" >text.tar
expect 65 "text.tar is not a complete tar archive" text.tar
head -c 60 pets-jpeg.tar.gz >cut.tar.gz
expect 65 "cut.tar.gz is not a complete tar archive" cut.tar.gz

# members that would leave the folder
tar -cPf absolute.tar "$work/in/whole/one"
expect 65 "which would leave the folder" absolute.tar
(cd whole && tar -cPf ../upwards.tar ../train/cat/0.jpg)
expect 65 "holds ../train/cat/0.jpg" upwards.tar
ln -s /etc link
tar -cf link.tar link
expect 65 "neither file nor folder" link.tar

[[ $(ls -A "$data" | sort | tr '\n' ' ') == "pets-jpeg sample-2 whole " ]] ||
  fail "left behind in data: $(ls -A "$data")"
