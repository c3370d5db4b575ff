#!/bin/sh
# Run our proxies and our agent under the conductor of the Rust SDK, and its conductor under ours.
#
#	interop/rust-conductor.sh [CONDUCTOR [ACP]]
#
# CONDUCTOR is the program agent-client-protocol-conductor, by default the one in
# $ACP_RUST_CONDUCTOR or in PATH, and ACP is this repository's program, by default the one in
# PATH. Without the conductor nothing is tested, which is said, and the status is 0.
set -eu

conductor=${1:-${ACP_RUST_CONDUCTOR:-agent-client-protocol-conductor}}
acp=${2:-acp}
if ! command -v "$conductor" >/dev/null 2>&1; then
	echo "SKIPPED: the conductor of the Rust SDK ($conductor) is not there: cargo install agent-client-protocol-conductor" >&2
	exit 0
fi
if ! command -v "$acp" >/dev/null 2>&1; then
	echo "there is no program $acp: go build -o acp ./cmd/acp, and name it" >&2
	exit 2
fi
conductor=$(command -v "$conductor") acp=$(command -v "$acp")
case "$conductor$acp" in
*[[:space:]\'\"]*)
	echo "the paths of the programs must not have spaces or quotes" >&2
	exit 2
	;;
esac

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CONFIG_HOME="$dir/config" XDG_DATA_HOME="$dir/data" XDG_STATE_HOME="$dir/state" XDG_CACHE_HOME="$dir/cache"
echo 'of the file' >"$dir/note.txt"
failed=0

# try NAME WANT COMMAND…: prompts what stands in front of the agent, and looks for WANT in what is said.
try() {
	name=$1 want=$2
	shift 2
	if out=$("$acp" exec --no-store /help -- "$@" 2>"$dir/stderr") && printf '%s\n' "$out" | grep -q -e "$want"; then
		echo "ok      $name"
		return
	fi
	failed=1
	echo "FAILED  $name"
	{
		printf '%s\n' "$out"
		cat "$dir/stderr"
	} | sed 's/^/        /'
}

context="$acp proxy context --file $dir/note.txt"
for version in 1 2; do
	agent="$acp agent --no-persist --protocol $version"
	try "version $version: its conductor, our agent" /sessions "$conductor" agent "$agent"
	try "version $version: its conductor, a proxy of ours" '\[context\]' "$conductor" agent "$context" "$agent"
	try "version $version: its conductor, three of ours" '\[context\]' \
		"$conductor" agent "$acp proxy redact" "$context" "$acp proxy budget --tokens 100000" "$agent"
	try "version $version: its conductor, ours as one proxy" '\[context\]' \
		"$conductor" agent "$acp conductor proxy '$acp proxy redact' '$context'" "$agent"
	try "version $version: our conductor, its own as one proxy" '\[context\]' \
		"$acp" conductor agent "$conductor proxy '$context' '$acp proxy redact'" "$agent"
	try "version $version: its conductor with a trace" /sessions \
		"$conductor" --trace "$dir/v$version.jsons" agent "$acp proxy redact" "$agent"
	if "$acp" check trace "$dir/v$version.jsons" >"$dir/check" 2>&1; then
		echo "ok      version $version: its trace passes acp check trace"
	else
		failed=1
		echo "FAILED  version $version: its trace"
		sed 's/^/        /' "$dir/check"
	fi
done
exit $failed
