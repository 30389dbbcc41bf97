#!/usr/bin/env bash
# run.sh STAGE... runs stages of the tests one after another, each with the race detector, and closes with one line per stage. Stages
# with clusters run anew and in random order. Of the others a package does not run again that passed before, if neither its code nor
# what it reads has changed, as go test has it; with TIDELINE_FRESH=1 all run, in random order. Stages of scenarios mostly wait, so
# that lanes of them may run side by side, joined by a plus: of integration+stock,sizing the first lane is integration, and the second
# stock and then sizing. What compiles or computes runs alone, because scenarios measure time.
#
# TIDELINE_LABELS chooses the specs of suites by their labels, as Ginkgo's --label-filter: those that are not long by default.
# TIDELINE_REPORTS is a folder that gets the JUnit reports of all stages, which have the seconds of each test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

gotestsum=$(test/tools/build.sh gotestsum)
# Everything temporary is in one folder, because tests that are interrupted leave theirs behind.
TMPDIR=$(mktemp -d)
export TMPDIR
# The name of that folder would be something that tests read. What may be answered by an earlier run has one of the same name each
# time, unless another run uses it now.
cache=${TIDELINE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tideline}
steady=$TMPDIR
mkdir -p "$cache"
exec 9>"$cache/tmp.lock"
if command -v flock >/dev/null && flock -n 9; then
	steady=$cache/tmp
fi
export TIDELINE_LABELS=${TIDELINE_LABELS-!long}
summary=$TMPDIR/summary
touch "$summary"
runner=
asides=()
failed=()

# cleanup ends what still runs, with everything it started: each stage is a process group of its own.
cleanup() {
	if [[ -n $runner ]] && kill -INT -- "-$runner" 2>/dev/null; then
		wait "$runner" || true
	fi
	for aside in "${asides[@]}"; do
		kill -INT -- "-$aside" 2>/dev/null && wait "$aside" || true
	done
	((${#failed[@]} == 0)) || keep
	[[ -z ${TIDELINE_REPORTS:-} ]] || { mkdir -p "$TIDELINE_REPORTS" && cp "$TMPDIR"/*.xml "$TIDELINE_REPORTS" || true; }
	chmod -R u+w "$TMPDIR" "$steady" 2>/dev/null || true
	rm -rf "$TMPDIR" "$steady"
}

# keep moves the logs that suites which failed have left into the cache, for a day.
keep() {
	local logs=$cache/logs suite
	for suite in "$TMPDIR"/tideline-{suite,quickstart}-*; do
		[[ -d $suite ]] || continue
		mkdir -p "$logs"
		find "$logs" -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} +
		mv "$suite" "$logs/" && echo "The logs of a suite that failed are in $logs/${suite##*/} now."
	done
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

# Without symbols for debuggers, which take half of a linker's time: there are 70 programs to link. Stack traces need none. And
# without the part of go vet that go test does, because make vet does all of it.
slim=(-ldflags=-w)

# Collecting garbage less often takes a tenth off compilers, tests and clusters. From 1 GiB on a process collects it as often as it
# must, so that a small machine has room for all. Stages that measure memory set their own.
export GOGC=${GOGC:-400} GOMEMLIMIT=${GOMEMLIMIT:-1GiB}

# plain is a function of awk that makes a line of text of what a report in XML says.
plain='function plain(text) {
	gsub(/&#xA;|&#x9;|[ \t]+/, " ", text); gsub(/&#34;/, "\"", text); gsub(/&#39;/, "\047", text)
	gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&amp;/, "\\&", text); gsub(/ +/, " ", text)
	return text
}
'

# run COMMAND... runs a command in a process group of its own and returns its status.
run() {
	"$@" 9>&- &
	runner=$!
	local status=0
	wait "$runner" || status=$?
	runner=
	return "$status"
}

# anew has go test run also what has passed before, in random order; temporary is where tests put their files.
anew=(-count=1 -shuffle=on)
temporary=$TMPDIR

# unless_known NAME FORMAT ARGUMENT... runs `go test` as gotests does, but for packages that passed before and would see nothing new.
unless_known() {
	local temporary=$steady
	[[ -n ${TIDELINE_FRESH:-} ]] || local anew=()
	mkdir -p "$steady"
	gotests "$@"
}

# gotests NAME FORMAT ARGUMENT... runs `go test` in the working directory.
gotests() {
	local name=$1 format=$2 report=$TMPDIR/$1.xml events=$TMPDIR/$1.json known status=0
	shift 2
	TMPDIR=$temporary run "$gotestsum" --jsonfile "$events" --junitfile "$report" \
		--format "$format" --format-hide-empty-pkg --hide-summary skipped \
		--post-run-command "bash -c 'printf \"%-12s %s tests, %s failed, %s skipped, %s errors in %s\n\" \
			$name \$TESTS_TOTAL \$TESTS_FAILED \$TESTS_SKIPPED \$TESTS_ERRORS \$GOTESTSUM_ELAPSED >>$summary'" \
		-- "${race[@]}" "${slim[@]}" -vet=off "${anew[@]}" "$@" || status=$?
	known=$(grep -c '"Output":"ok .*(cached)' "$events" || true)
	((known == 0)) || echo "             unchanged since they passed: $known packages" >>"$summary"
	# The names of tests that failed and their first words, because in CI the closing lines may be all that is left of the log.
	# A test with subtests fails with them, and says nothing itself.
	((status == 0)) || awk "$plain"'
		/<testcase / {
			match($0, /classname="[^"]*"/); package = substr($0, RSTART + 11, RLENGTH - 12)
			match($0, / name="[^"]*"/); test = plain(substr($0, RSTART + 7, RLENGTH - 8))
			sub(/.*\/tideline\//, "", package)
		}
		/<failure / { inside = 1; said = ""; sub(/.*<failure [^>]*>/, "") }
		inside { said = said " " $0 }
		/<\/failure>/ {
			inside = 0
			sub(/<\/failure>.*/, "", said)
			said = plain(said)
			gsub(/=== (RUN|PAUSE|CONT|NAME) [^ ]*|--- FAIL: [^ ]* \([0-9.]+s\)/, "", said); gsub(/^ +| +$/, "", said); gsub(/ +/, " ", said)
			if (said != "" && shown++ < 10) printf "  failed: %s in %s: %.300s\n", test, package, said
		}
	' "$report" >>"$summary" || true
	return "$status"
}

# crashes hits the ledger at each of its statements and calls, of which the stage unit tries some.
crashes() {
	TIDELINE_CRASHES=each gotests crashes pkgname -timeout=15m -run='^(TestCrashAt|TestFaultsOfTheLedger)' ./internal/usage/...
}

# seeds draws more fleets with bad nodes, and more merges and trainings at caps, than the stage unit.
seeds() {
	TIDELINE_SEEDS=40 gotests seeds pkgname -timeout=15m -run='^(TestBadNodes|TestRandomMergesAndTrainings)' ./internal/training/suspicion ./internal/merging
}

# unit runs everything that needs no cluster.
unit() {
	local list status=0
	mapfile -t list < <(go list ./... | grep -Ev '/tideline/test/' && go list ./test/tools/... ./test/integration/badinput \
		./test/perf/merge/... ./test/perf/speed/... ./test/perf/giveway/... ./test/perf/console/...)
	command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null ||
		echo "not run: the ledger on PostgreSQL: install postgresql" >>"$summary"
	command -v chromium chromium-browser google-chrome google-chrome-stable >/dev/null ||
		echo "not run: the report in a browser: install chromium" >>"$summary"
	# A Prometheus that is not in the cache yet is built before the first test of its package, in about 7 minutes.
	TIDELINE_WARNINGS=$TMPDIR/warnings unless_known unit pkgname -timeout=15m "${list[@]}" || status=$?
	[[ ! -s $TMPDIR/warnings ]] || cat "$TMPDIR/warnings" >>"$summary"
	local programs=("$cache"/bin/prometheus-*/promtool)
	[[ -x ${programs[0]} ]] || command -v promtool >/dev/null ||
		echo "not run: usage on a real Prometheus, which could not be built: see the log" >>"$summary"
	return "$status"
}

# project runs the tests of PROJECT and the manifests, which are a module of their own.
project() {
	local status=0
	cd test/project
	unless_known project pkgname -timeout=5m ./... || status=$?
	cd ../..
	return "$status"
}

# bundle runs the tests of what makes the bundle for OLM, and of the bundle, which are a module of their own. Without the race
# detector: nothing there runs side by side, and OLM's libraries would be built a second time for it.
bundle() {
	local status=0 race=()
	cd test/tools/bundle
	unless_known bundle pkgname -timeout=5m ./... || status=$?
	cd ../../..
	return "$status"
}

# chart holds the Helm chart to what kustomize builds, by Helm's own library, in a module of its own. Without the race detector:
# nothing there runs side by side, and Helm would be built a second time for it.
chart() {
	local status=0 race=()
	cd test/tools/chart
	unless_known chart pkgname -timeout=5m ./... || status=$?
	cd ../../..
	return "$status"
}

# cluster runs the tests of the local cluster and of what is built on it. One package at a time, because each starts
# clusters; named test by test, because a minute may pass between two.
cluster() {
	local short=(-short)
	[[ $TIDELINE_LABELS != long ]] || short=()
	gotests cluster testname -timeout=10m -p=1 "${short[@]}" ./test/cluster/... ./test/testutil/...
}

# demo runs the demos, each on a cluster of its own, and compares what they print with README.
demo() {
	gotests demo testname -timeout=10m -p=1 ./test/demo/...
}

# operator builds the operator for all suites of this run. A suite that tells nothing of it builds its own.
operator() {
	if [[ -z ${TIDELINE_TEST_OPERATOR:-} ]]; then
		run go build -buildvcs=false "${race[@]}" "${slim[@]}" -o "$TMPDIR/tideline" . || return
		export TIDELINE_TEST_OPERATOR=$TMPDIR/tideline
	fi
}

# specs NAME TIMEOUT FOLDER [PROCESSES] runs those specs of the suite test/FOLDER that have the labels. The timeout is for a
# suite that hangs: a slow machine has taken half of it. They run side by side on one cluster; most of the time they wait.
specs() {
	local status=0 name=$1 report=$TMPDIR/$1.xml label=${label:-$TIDELINE_LABELS}
	operator || return
	run go tool ginkgo run --procs="${4:-4}" -v --no-color --randomize-all --timeout="$2" "${race[@]/#-race/--race}" --vet=off "${slim[@]/#/-}" \
		--label-filter="$label" --junit-report="$name.xml" --output-dir="$TMPDIR" "./test/$3" || status=$?
	# Without a report the suite did not compile or was cut short, which its own lines say.
	[[ ! -s $report ]] || awk -v name="$name" -v label="$label" "$plain"'
		/<testsuite / { match($0, / time="[0-9.]+"/); seconds = substr($0, RSTART + 7, RLENGTH - 8) }
		/<testcase name="\[It\]/ {
			specs++
			skipped += / status="(skipped|pending)"/
			if (/ status="(failed|panicked|timedout|interrupted|aborted)"/) {
				failed++
				match($0, /name="[^"]*"/)
				spec = plain(substr($0, RSTART + 6, RLENGTH - 7))
			}
		}
		# The first words and the place of what failed, because in CI these lines may be all that is left of the log.
		/^ *<(failure|error) message=/ && spec {
			match($0, /message="[^"]*"/)
			message = plain(substr($0, RSTART + 9, RLENGTH - 10))
			place = match($0, /\/test\/[a-z\/]*\/[a-z_]*_test\.go:[0-9]+/) ? substr($0, RSTART + 1, RLENGTH - 1) : ""
			failures = failures sprintf("  failed: %s, %s: %.300s\n", spec, place, message)
			spec = ""
		}
		# What has another label is no spec of this run; a spec that skips itself says why.
		/<skipped message="skipped">/ { specs--; skipped-- }
		END {
			printf "%-12s %d specs, %d failed, %d skipped in %.1fs\n%s", name, specs, failed, skipped, seconds, failures
			exit label != "" && specs == 0
		}
	' "$report" >>"$summary" || status=1
	return "$status"
}

# integration runs the numbered scenarios.
integration() {
	specs integration 35m integration 6
}

# versions runs the scenarios of the main way on each pair of a Kubernetes and a Volcano that the local cluster can be made of.
# What is not in the cache yet is built first, in up to 10 minutes for each version on two cores.
versions() {
	local status=0 label='main way' kubernetes volcano
	for kubernetes in test/cluster/modules/kubernetes-*; do
		export TIDELINE_KUBERNETES=${kubernetes##*-}
		for volcano in test/cluster/modules/volcano-*; do
			export TIDELINE_VOLCANO=${volcano##*-}
			if run go run ./test/cluster/cmd/localcluster build; then
				specs "${kubernetes##*/} ${volcano##*/}" 20m integration 6 || status=1
			else
				echo "${kubernetes##*/} ${volcano##*/} could not be built: see above" >>"$summary"
				status=1
			fi
		done
	done
	unset TIDELINE_KUBERNETES TIDELINE_VOLCANO
	return "$status"
}

# stock runs the scenarios of shrinking on Volcano as it is shipped.
stock() {
	specs stock 20m integration/stock
}

# pairs runs the scenarios of giving way under each pair of Volcano's actions that evict, one after another.
pairs() {
	specs pairs 15m integration/pairs 1
}

# capacity holds the model of capacity to what Volcano does: TIDELINE_DIFFERENTIAL questions, default 60.
capacity() {
	specs capacity 60m integration/capacity
}

# merge runs the numbered behaviours of merges, with a real S3 server.
merge() {
	specs merge 35m integration/merge
}

# profile runs the numbered behaviours of profiles. Shares are of the whole cluster, so one spec follows another.
profile() {
	specs profile 25m integration/profile 1
}

# topology runs those on nodes in two tiers of HyperNodes.
topology() {
	specs topology 20m integration/topology 2
}

# order runs those that begin with a ledger: who goes first while room is short, and what the ledger has.
order() {
	specs order 20m integration/order 2
}

# mergeline holds the simulated line of merges to what a real cluster did with it.
mergeline() {
	gotests mergeline testname -timeout=15m ./test/perf/mergeline/...
}

# sharing shows pods that share a GPU.
sharing() {
	specs sharing 20m integration/sharing 1
}

# pages shows how people reach pages of trainings.
pages() {
	specs pages 20m integration/pages 1
}

# gateway has such pages reached through Traefik, which is built for it.
gateway() {
	specs gateway 20m integration/gateway 1
}

# sizing runs the numbered behaviours of sizing, with a real Prometheus.
sizing() {
	specs sizing 25m integration/sizing 1
}

# report runs the numbered behaviours of reports, with a real server for mail.
report() {
	specs report 30m integration/report 1
}

# pools holds the operator to its figures with 5,000 merges. Without the race detector, as all that measures the operator.
pools() {
	local race=()
	GOGC=200 specs pools 25m perf/pools 1
}

# jobs holds the operator to its figures with 500 jobs that come at once.
jobs() {
	local race=()
	GOGC=200 specs jobs 25m perf/jobs 1
}

# soak holds the operator to its limit of memory beside thousands of hostile objects, TIDELINE_SOAK percent of them. An API server
# keeps gigabytes of these, and must leave memory for etcd's file: it may collect garbage often, but not all the time.
soak() {
	local race=()
	GOGC=40 GOMEMLIMIT=off specs soak 110m perf/soak 1
}

# ledger holds the ledger to its figures for a million days of pods. Without the race detector, which would measure itself.
ledger() {
	local race=() GOGC=100
	gotests ledger standard-verbose -timeout=30m ./test/perf/ledger
}

# requests holds what sizing requests to its aims beside its rivals, in a module of its own. Without the race detector: nothing
# runs side by side there, and the libraries of Kubernetes would be built a second time for it.
requests() {
	local status=0 race=()
	cd test/perf/sizing
	gotests requests testname -timeout=10m ./... || status=$?
	cd ../../..
	return "$status"
}

# node trains with PyTorch on a real kubelet, as root on Debian 12.
node() {
	run go run ./test/node/cmd/prepare || return
	specs node 45m node 1
}

# quickstart follows the documentation as a new user would.
quickstart() {
	specs quickstart 25m quickstart 1
}

# image runs the Dockerfile's build and holds the program to what the image promises. Without the race detector: nothing runs side
# by side.
image() {
	local race=()
	gotests image testname -timeout=30m ./test/image
}

# site runs the tests of what builds the documentation into a site, which are a module of their own.
site() {
	local status=0
	cd test/tools/site
	unless_known site pkgname -timeout=5m ./... || status=$?
	cd ../../..
	return "$status"
}

# install applies what users install: component ha, and another version over the one before it.
install() {
	specs install 15m install 2
}

# pytorchjob gives PyTorchJobs to training-operator and, converted, to Tideline.
pytorchjob() {
	specs pytorchjob 12m integration/pytorchjob
}

# notebooks has idle notebooks stopped, with Kubeflow's own controller and a real Prometheus.
notebooks() {
	specs notebooks 15m integration/notebooks 1
}

# volcanojob gives Volcano Jobs to Volcano's controller and, converted, to Tideline.
volcanojob() {
	specs volcanojob 12m integration/volcanojob
}

# helm installs the chart on a cluster, by Helm's own library.
helm() {
	local status=0 race=()
	cd test/tools/chart
	TIDELINE_HELM=1 gotests helm testname -timeout=10m -run='^TestReleaseOnACluster$' . || status=$?
	cd ../../..
	return "$status"
}

# olm has OLM install the bundle and upgrade to it, and runs what it installed.
olm() {
	specs olm 25m olm 1
}

# faults hits the operator at each of its writes: once each, or with every fault if TIDELINE_FAULTS is full. Its closing line is
# followed by a table of what was tried.
faults() {
	local status=0 table=$TMPDIR/faults.table
	TIDELINE_FAULTS_TABLE=$table specs faults 60m faults || status=$?
	[[ ! -s $table ]] || cat "$table" >>"$summary"
	return "$status"
}

# stage NAME runs one stage.
stage() {
	case $1 in
	unit | crashes | seeds | project | chart | bundle | cluster | demo | integration | versions | stock | pairs | capacity | merge | profile | order | sharing | pages | gateway | topology | mergeline | sizing | report | pools | jobs | soak | \
		ledger | requests | node | quickstart | install | image | site | pytorchjob | volcanojob | notebooks | faults | olm | helm)
		echo "== $1 tests"
		"$1"
		;;
	*)
		echo "$0: there is no stage $1" >&2
		exit 2
		;;
	esac
}

# aside LANE starts the stages of a lane as a program of its own, whose output waits in a file.
aside() {
	# shellcheck disable=SC2086 # a lane is a list
	test/run.sh ${1//,/ } >"$TMPDIR/$1.log" 2>&1 9>&- &
	asides+=("$!")
}

# collect LANE... waits for the lanes that run aside, in their order, and shows what they said; their closing lines join ours.
collect() {
	for lane in "$@"; do
		wait "${asides[0]}" || failed+=("$(sed -n '$s/^FAIL: //p' "$TMPDIR/$lane.log" | grep . || echo "$lane")")
		asides=("${asides[@]:1}")
		sed '/^== done$/,$d' "$TMPDIR/$lane.log"
		sed '1,/^== done$/d; /^FAIL/d; /^PASS$/d' "$TMPDIR/$lane.log" >>"$summary"
	done
}

for names in "$@"; do
	IFS=+ read -ra lanes <<<"$names"
	if ((${#lanes[@]} > 1)); then
		operator || failed+=(operator)
	fi
	for lane in "${lanes[@]:1}"; do
		aside "$lane"
	done
	IFS=, read -ra stages <<<"${lanes[0]}"
	for name in "${stages[@]}"; do
		stage "$name" || failed+=("$name")
	done
	collect "${lanes[@]:1}"
done

echo "== done"
# What failed is said last: in CI a dozen lines may be all that is left of the log.
grep -v '^  failed: ' "$summary" || true
grep '^  failed: ' "$summary" || true
if ((${#failed[@]})); then
	echo "FAIL: ${failed[*]}"
	exit 1
fi
echo "PASS"
