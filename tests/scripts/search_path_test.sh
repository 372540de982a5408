#!/bin/bash
# search_path_test.sh BUILD_FOLDER: no program and no library of the build looks for libraries in the current folder, where anybody may have
# put one. An empty entry of the search path means the current folder.
set -euo pipefail
looked=0
for file in "$1"/bin/* "$1"/lib/*.so; do
  path=$(readelf --dynamic "$file" 2>/dev/null | sed -n 's/.*Library r\(un\)\?path: \[\(.*\)\]/\2/p') || continue
  looked=$((looked + 1))
  case ":$path:" in
    :: | *::*) [ -z "$path" ] || { printf '%s searches the current folder: %s\n' "$file" "$path"; exit 1; } ;;
  esac
done
printf '%d files\n' "$looked"
[ "$looked" -gt 5 ]
