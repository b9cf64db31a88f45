#!/usr/bin/env bash
# Pins the images that the manifests bring by the digests that their tags have now, in base beside this script: the pause
# container, the autoscaler, and warmpool's own where it is named. All are looked up first, and unless all are found no file
# is changed. The images of Workspaces stay as they are: they are those of the WorkspaceTemplates.
#   digests.sh [IMAGE]
# crane is $CRANE, which may have flags.
set -euo pipefail
base=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)/base
read -ra crane <<<"${CRANE:-crane}"

fail() {
	echo "$*: no file is changed" >&2
	exit 1
}

# pinned prints the image with its tag and the digest that it has now.
pinned() {
	local tagged=${1%@*} digest
	digest=$("${crane[@]}" digest "$tagged") || fail "the digest of $tagged cannot be looked up"
	[[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || fail "the registry of $tagged answers with no digest but: $digest"
	echo "$tagged@$digest"
}

edits=()
for key in pause-image cpa-image; do
	image=$(sed -nE "s/^  $key: ([^ ]+).*/\1/p" "$base/values.yaml")
	[[ -n $image ]] || fail "$base/values.yaml has no $key"
	image=$(pinned "$image")
	edits+=(-e "s,^(  $key: )[^ ]+,\1$image,")
	echo "$image"
done
if [[ -n ${1-} ]]; then
	own=$(pinned "$1")
	name=${1%@*}
	[[ ${name##*/} != *:* ]] || name=${name%:*}
	echo "$own"
fi

replace() {
	local file=$1 new
	new=$(sed -E "${@:2}" "$file")
	echo "$new" >"$file"
}

replace "$base/values.yaml" "${edits[@]}"
if [[ -n ${1-} ]]; then
	replace "$base/kustomization.yaml" -e "s,^(  newName: )[^ ]+,\1$name," -e "s,^  (newTag|digest): .*,  digest: ${own#*@},"
fi
