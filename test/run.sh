#!/usr/bin/env bash
# run.sh STAGE... runs stages of the tests one after another, each in random order and with the race detector, and closes
# with one line per stage. One after another, because the scenarios measure time on a real API server, which the compiler
# and the other tests would disturb on a small machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

gotestsum=$(test/tools/build.sh gotestsum)
# Everything temporary is in one folder, because tests that are interrupted leave theirs behind.
TMPDIR=$(mktemp -d)
export TMPDIR
summary=$TMPDIR/summary
touch "$summary"
runner=

# cleanup ends what still runs, with everything it started: each stage is a process group of its own.
cleanup() {
	if [[ -n $runner ]] && kill -INT -- "-$runner" 2>/dev/null; then
		wait "$runner" || true
	fi
	chmod -R u+w "$TMPDIR" 2>/dev/null || true
	rm -rf "$TMPDIR"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
set -m

race=()
if [[ $(go env CGO_ENABLED) == 1 ]]; then
	race=(-race)
else
	echo "not run: the race detector, which needs a C compiler: install gcc"
fi

# run COMMAND... runs a command in a process group of its own and returns its status.
run() {
	"$@" &
	runner=$!
	local status=0
	wait "$runner" || status=$?
	runner=
	return "$status"
}

# gotests NAME FORMAT ARGUMENT... runs `go test` in the working directory.
gotests() {
	local name=$1 format=$2
	shift 2
	run "$gotestsum" --format "$format" --format-hide-empty-pkg --hide-summary skipped \
		--post-run-command "bash -c 'printf \"%-12s %s tests, %s failed, %s skipped, %s errors in %s\n\" \
			$name \$TESTS_TOTAL \$TESTS_FAILED \$TESTS_SKIPPED \$TESTS_ERRORS \$GOTESTSUM_ELAPSED >>$summary'" \
		-- "${race[@]}" -shuffle=on "$@"
}

# packages GREP-OPTION lists the packages of the main module outside (-v) or inside (-e) of what needs a cluster.
packages() {
	go list ./... | grep -E "$1" '/tideline/test/(cluster|demo|integration|testutil)(/|$)'
}

# unit runs everything that needs no cluster.
unit() {
	local list
	mapfile -t list < <(packages -v)
	gotests unit pkgname -timeout=5m "${list[@]}"
}

# project runs the tests of PROJECT and the manifests, which are a module of their own.
project() {
	local status=0
	cd test/project
	gotests project pkgname -timeout=5m ./... || status=$?
	cd ../..
	return "$status"
}

# cluster runs the tests of the local cluster and of what is built on it. One package at a time, because each starts
# clusters; named test by test, because a minute may pass between two.
cluster() {
	local list
	mapfile -t list < <(packages -e | grep -v '/test/integration$')
	gotests cluster testname -timeout=10m -p=1 "${list[@]}"
}

# integration runs the numbered scenarios side by side on one cluster; most of the time they wait.
integration() {
	local status=0 report=$TMPDIR/integration.xml
	run go tool ginkgo run --procs=4 -v --no-color --randomize-all --timeout=12m "${race[@]/#-race/--race}" \
		--junit-report="${report##*/}" --output-dir="$TMPDIR" ./test/integration || status=$?
	# Without a report the suite did not compile or was cut short, which its own lines say.
	[[ ! -s $report ]] || awk '
		/<testsuite / { match($0, / time="[0-9.]+"/); seconds = substr($0, RSTART + 7, RLENGTH - 8) }
		/<testcase name="\[It\]/ { specs++; failed += / status="(failed|panicked|timedout|interrupted|aborted)"/; skipped += / status="(skipped|pending)"/ }
		END { printf "%-12s %d specs, %d failed, %d skipped in %.1fs\n", "integration", specs, failed, skipped, seconds }
	' "$report" >>"$summary"
	return "$status"
}

failed=()
for name in "$@"; do
	case $name in
	unit | project | cluster | integration)
		echo "== $name tests"
		"$name" || failed+=("$name")
		;;
	*)
		echo "$0: there is no stage $name" >&2
		exit 2
		;;
	esac
done

echo "== done"
cat "$summary"
if ((${#failed[@]})); then
	echo "FAIL: ${failed[*]}"
	exit 1
fi
echo "PASS"
