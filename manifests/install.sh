#!/usr/bin/env bash
# Installs an overlay with an image of its own, or takes it out of the cluster again. No file of the repository is changed.
#   install.sh deploy OVERLAY IMAGE
#   install.sh undeploy OVERLAY
# OVERLAY is the name of a folder in manifests/overlays, or a path with a slash. kubectl is $KUBECTL, which may have flags.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
read -ra kubectl <<<"${KUBECTL:-kubectl}"
limit=${WAIT:-2m} # for each of the things that are waited for
ours=app.kubernetes.io/part-of=warmpool
keep=warmpool.sh/keep # marks a namespace that was there before warmpool

k() { "${kubectl[@]}" "$@"; }

fail() {
	echo "$*" >&2
	exit 1
}

# render writes a kustomization into a folder of its own that refers to the overlay and holds the patches of standard
# input. kustomize takes no absolute path, so the way goes up to the root and down again.
render() {
	local overlay=$1 up
	[[ $overlay == */* ]] || overlay=$here/overlays/$overlay
	[[ -f $overlay/kustomization.yaml ]] || fail "$overlay has no kustomization.yaml: set OVERLAY to one of: $(ls "$here/overlays" | paste -sd' ' -), or to a path"
	overlay=$(cd "$overlay" && pwd -P)
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	up=$(cd "$dir" && pwd -P | sed -E 's#/[^/]+#../#g')
	cat >"$dir/kustomization.yaml" <<-EOF
		resources: [ "$up${overlay#/}" ]
		patches:
		$(cat)
	EOF
	k kustomize "$dir" >"$dir/all.yaml"
}

deploy() {
	local there namespace
	render "$1" <<-EOF
		- target: {kind: Deployment, name: warmpool}
		  patch: |
		    - {op: replace, path: /spec/template/spec/containers/0/image, value: "$2"}
	EOF
	split_webhooks
	there=$(k get namespaces -l "app.kubernetes.io/part-of!=warmpool" -o name)
	# What others have changed by hand comes back to what the manifests say. caBundle and replicas are not in them.
	# Placeholders cannot be changed while warmpool is down, which this may be what fixes.
	apply || { ready && apply; }
	for namespace in $(k get namespaces -l "$ours" -o name); do
		if grep -qxF "$namespace" <<<"$there"; then
			k annotate "$namespace" "$keep=it was here before warmpool"
		fi
	done
	ready
	settle_placement
}

# settle_placement takes away what has placed pods before, once what places them now is in force. Both at once do no harm.
settle_placement() {
	if grep -q '^  name: warmpool-placement-trial$' "$dir/all.yaml"; then
		in_force
		remove mutatingwebhookconfiguration warmpool-pods
	elif grep -q '^kind: MutatingAdmissionPolicyBinding$' "$dir/all.yaml"; then
		echo "Now apply what warmpool export cel prints, then: kubectl delete mutatingwebhookconfiguration warmpool-pods" >&2
	else
		remove_policy
	fi
}

# in_force waits until warmpool says of the binding that is there now that all API servers place pods by it.
in_force() {
	local namespace uid
	namespace=$(own_namespace)
	uid=$(k get mutatingadmissionpolicybinding warmpool-placement -o jsonpath='{.metadata.uid}')
	k wait --for=create --timeout="$limit" -n "$namespace" configmap/warmpool-placement
	k wait --for=jsonpath='{.metadata.annotations.warmpool\.sh/placement-in-force}'="$uid" --timeout="$limit" -n "$namespace" configmap/warmpool-placement
}

remove_policy() {
	local namespace
	[[ $(k api-resources --api-group=admissionregistration.k8s.io -o name) == *mutatingadmissionpolicies* ]] || return 0
	namespace=$(own_namespace)
	remove mutatingadmissionpolicy/warmpool-placement mutatingadmissionpolicybinding/warmpool-placement mutatingadmissionpolicybinding/warmpool-placement-trial
	[[ -z $namespace ]] || remove -n "$namespace" configmap/warmpool-placement configmap/warmpool-placement-trial
}

own_namespace() { k get deployments -A -l "$ours,app.kubernetes.io/name=warmpool" -o jsonpath='{.items[*].metadata.namespace}'; }

# split_webhooks gives the webhook of pods a configuration of its own before it goes from that of placeholders, where it was
# in earlier versions: with its caBundle, so that every pod is placed meanwhile.
split_webhooks() {
	local webhooks
	webhooks=$(k get mutatingwebhookconfiguration warmpool --ignore-not-found -o jsonpath='{.webhooks[*].name}')
	[[ $webhooks == "pods.warmpool.sh placeholders.warmpool.sh" ]] || return 0
	[[ -z $(k get mutatingwebhookconfiguration warmpool-pods --ignore-not-found -o name) ]] || return 0
	k get mutatingwebhookconfiguration warmpool -o json | k patch --local -f - --type=json -o json -p '[
		{"op": "replace", "path": "/metadata", "value": {"name": "warmpool-pods", "labels": {"app.kubernetes.io/part-of": "warmpool"}}},
		{"op": "remove", "path": "/webhooks/1"}]' | k create -f -
	# To apply without it would not do: its caBundle has another owner, and so it would stay, with nothing else in it.
	k patch mutatingwebhookconfiguration warmpool --type=json -p '[
		{"op": "test", "path": "/webhooks/0/name", "value": "pods.warmpool.sh"}, {"op": "remove", "path": "/webhooks/0"}]'
}

apply() { k apply --server-side --force-conflicts -f "$dir/all.yaml"; }

ready() {
	local namespace
	namespace=$(own_namespace)
	k rollout status --timeout="$limit" -n "$namespace" deployment/warmpool
}

# The webhooks go first: nothing that follows waits for a warmpool that is going. One step that fails does not keep the
# others from being tried.
undeploy() {
	local failed=0 kind namespace namespaces=
	render "$1" <<-'EOF'
		- {target: {kind: Namespace}, patch: "{$patch: delete, kind: any, metadata: {name: any}}"}
		- {target: {kind: PriorityClass}, patch: "{$patch: delete, kind: any, metadata: {name: any}}"}
	EOF
	remove mutatingwebhookconfiguration,validatingwebhookconfiguration -l "$ours" || failed=1
	remove --cascade=foreground -f "$dir/all.yaml" || failed=1
	remove_policy || failed=1
	remove_class || failed=1
	for namespace in $(k get namespaces -l "$ours" -o jsonpath='{.items[*].metadata.name}'); do
		# What warmpool itself has written, and cert-manager, which keeps its Secrets.
		remove -n "$namespace" lease/warmpool configmap/warmpool-last-seen configmap/warmpool-demand configmap/warmpool-placement configmap/warmpool-placement-trial secret/warmpool-ca \
			secret/warmpool-webhook-ca secret/warmpool-webhook-tls || failed=1
		if keeps "$namespace"; then
			continue
		fi
		namespaces+=" $namespace"
	done
	for kind in $(k api-resources --api-group=openreports.io -o name) $(k api-resources --api-group=wgpolicyk8s.io -o name); do
		remove "$kind" -A -l app.kubernetes.io/managed-by=warmpool || failed=1
	done
	if [[ -n $namespaces ]]; then
		# shellcheck disable=SC2086 # names of namespaces have no spaces
		remove namespace $namespaces || failed=1
	fi
	[[ $failed == 0 ]] || fail "Not everything is gone: see above, then run this again."
}

remove() { k delete --ignore-not-found --timeout="$limit" "$@"; }

# remove_class keeps the PriorityClass while others' Deployments need it to make pods.
remove_class() {
	local class users
	for class in $(k get priorityclasses -l "$ours" -o jsonpath='{.items[*].metadata.name}'); do
		users=$(k get deployments -A -o jsonpath="{range .items[?(@.spec.template.spec.priorityClassName==\"$class\")]}{.metadata.namespace}/{.metadata.name} {end}") || return
		if [[ -n $users ]]; then
			echo "PriorityClass $class stays: these Deployments use it: $users" >&2
			continue
		fi
		remove priorityclass "$class" || return
	done
}

# keeps tells, and says, that a namespace stays: it was there before, or somebody else has something in it, or what is in it
# cannot be told.
keeps() {
	local namespace=$1 before kinds others
	before=$(k get namespace "$namespace" -o jsonpath="{.metadata.annotations.${keep//./\\.}}") || return 0
	if [[ -n $before ]]; then
		echo "Namespace $namespace stays: it was here before warmpool" >&2
		k label namespace "$namespace" "${ours%=*}-"
		k annotate namespace "$namespace" "$keep-"
		return 0
	fi
	if ! kinds=$(k api-resources --namespaced --verbs=list,delete -o name | paste -sd, -) ||
		! others=$(k get "$kinds" -n "$namespace" --ignore-not-found -o go-template="$others_template"); then
		others="something that could not be listed"
	fi
	[[ -n $others ]] && echo "Namespace $namespace stays: it has $others" >&2
}

# What is in a namespace and neither warmpool's, nor made by Kubernetes for every namespace, nor owned by something else.
others_template='{{range .items}}{{$m := .metadata}}{{$n := printf "%s/%s" .kind $m.name}}
{{- if not (or $m.ownerReferences $m.deletionTimestamp (eq .kind "Event" "Endpoints")
	(eq $n "ConfigMap/kube-root-ca.crt" "ServiceAccount/default")
	(and $m.labels (eq (printf "%v" (index $m.labels "app.kubernetes.io/part-of")) "warmpool")))}}{{$n}} {{end}}{{end}}'

case "${1:-} $#" in
"deploy 3")
	[[ -n $3 ]] || fail "which image? make deploy IMG=registry/name:tag"
	deploy "$2" "$3"
	;;
"undeploy 2") undeploy "$2" ;;
*) fail "usage: install.sh deploy OVERLAY IMAGE | install.sh undeploy OVERLAY" ;;
esac
