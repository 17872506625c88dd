#!/usr/bin/env bash
# Runs tests, and prints their duration and the ten slowest tests.
#
#   test/run.sh short       all tests that need neither PostgreSQL nor Terraform
#   test/run.sh all         all tests; with REQUIRE_ALL=1 also those of instances
#   test/run.sh instances   the tests whose outcome can differ with three servers
#
# TESTFLAGS are additional flags of go test, quoted for a shell, such as "-run 'Webhook|Reads'".
# DEVICEACCESS_TEST_TIMEOUT_SCALE=3 makes every deadline three times as long.
set -uo pipefail
cd "$(dirname "$0")/.."
export CHECKPOINT_DISABLE=1 TF_CLI_CONFIG_FILE=/dev/null
eval "flags=(${TESTFLAGS:-})"
timeout=$(awk -v scale="${DEVICEACCESS_TEST_TIMEOUT_SCALE:-1}" 'BEGIN { printf "%dm", 60 * scale }') # a package takes 10 min at most
gotestsum=$(go tool -modfile=tools/go.mod -n gotestsum) || exit 1
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
failed=0

# Tests wait for processes they start, so more tests run at a time than there are processors.
# Without symbol tables, linking the test binaries takes a quarter less time.
phase() {
	local name=$1
	shift
	"$gotestsum" --format pkgname --hide-summary=skipped --jsonfile "$log/$name.json" -- \
		-timeout "$timeout" -p 3 -parallel 8 -ldflags '-s -w' "$@" "${flags[@]}"
}

instances() { INSTANCES=3 phase instances ./test/spec ./server/app ./server/rest ./server/connectpage ./provider; }

case ${1:-} in
short) phase short -short ./... || failed=1 ;;
all)
	# A separate module, because Prometheus has many dependencies. Its results are not cached, because the server is in another module.
	(cd test/alerts && phase alerts -count=1 ./...) &
	# The longest packages start first, so that none of them runs alone at the end.
	phase all ./test/chaos ./server/adapter/zwavejs ./provider ./server/cmd/deviceaccess-server ./... || failed=1
	wait $! || failed=1
	[ "${REQUIRE_ALL:-}" != 1 ] || instances || failed=1
	;;
instances) instances || failed=1 ;;
*)
	sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac

cat "$log"/*.json > "$log/tests"
echo
echo "The ten slowest tests:"
"$gotestsum" tool slowest --num 10 --threshold 1ms --jsonfile "$log/tests"
echo "The tests took $((SECONDS / 60)) min $((SECONDS % 60)) s."
exit $failed
