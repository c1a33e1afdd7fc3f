#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The tools that the end-to-end tests rely on, held against each other on loopback: engine, checker,
# load, echo and keeper. No namespace, no BPF, no root. BUILD names the build directory.

BUILD=${BUILD:-build}
HERE=$(dirname "$0")
PORT=${PORT:-29470} # and those up to 29499
ENGINE=127.0.0.1:$PORT
LIAR=127.0.0.1:$((PORT + 1))
SLOW=127.0.0.1:$((PORT + 2)) # an engine that takes longer than the test
ECHO=127.0.0.1:$((PORT + 18))
failed=0
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait 2>/dev/null' EXIT

# check NAME COMMAND...: the command must succeed.
check() {
	local name=$1
	shift
	if "$@"; then
		echo "PASS $name"
	else
		echo "FAIL $name: $*"
		failed=1
	fi
}

sim() { curl -s "$ENGINE/sim?$1"; }
is() { # is JSON FILTER: the filter is true for it
	jq -e "$2" <<<"$1" >/dev/null || { echo "     $1"; false; }
}
soon() { # soon FILTER: becomes true for the slow engine's state within seconds
	local state
	for _ in {1..500}; do
		state=$(curl -s "$SLOW/sim")
		is "$state" "$1" >/dev/null && return
		sleep 0.02
	done
	is "$state" "$1"
}
until_up() { # until_up ADDR:PORT
	for _ in {1..1000}; do
		(exec 3<>"/dev/tcp/${1%:*}/${1#*:}") 2>/dev/null && return
		sleep 0.02
	done
	echo "nothing listens on $1"
}
run() { "$BUILD/checker" "$@"; }
lied() { run --count 2 --concurrency 2 --timeout-ms 2000 --mix "POST /$1" "$LIAR"; }

"$BUILD/engine" --slots 4 --service-ms 80 --tokens 4 --max-queued-reqs 12 \
	--listen "$ENGINE" --listen "[::1]:$PORT" &
pids+=($!)
"$BUILD/engine" --slots 4 --service-ms 60000 --listen "$SLOW" &
pids+=($!)
"$HERE/liar.py" $((PORT + 1)) &
pids+=($!)
"$BUILD/echo" --listen "$ECHO" --listen "[::1]:$((PORT + 18))" &
pids+=($!)
"$HERE/meddler.py" $((PORT + 20)) $((PORT + 18)) &
pids+=($!)
until_up "$ENGINE"
until_up "$ECHO"
until_up 127.0.0.1:$((PORT + 27))
until_up "$LIAR"
until_up "$SLOW"

echo "# the checker believes only what is true"
for path in good chunks interim; do
	check "sound: $path" is "$(run --count 3 --mix "POST /$path" "$LIAR")" '.ok == 3 and .errors == 0'
done
for lie in short=short short-chunks=short short-head=short extra=wrong other-code=wrong \
	no-json=wrong no-done=wrong bad-chunk=wrong no-http=wrong open=open reset=reset \
	silent=timeout; do
	out=$(lied "${lie%=*}")
	check "exit status with ${lie%=*}" [ $? = 1 ]
	check "noticed: $lie" is "$out" ".faults.${lie#*=} == 2 and .errors == 2"
done
check "noticed: status" is "$(run --count 2 --expect-status 529 --mix 'GET /good' "$LIAR")" \
	'.faults.status == 2'
check "noticed: nobody there" is "$(run --count 2 127.0.0.1:1)" '.faults.connect == 2'
check "client ports used again" is \
	"$(run --count 400 --concurrency 4 --source-port 29480-29487 --mix 'GET /health' "$ENGINE")" \
	'.ok == 400'

echo "# the engine"
mix='POST /v1/chat/completions:2,POST /v1/completions:1,GET /health:1,GET /v1/models:1'
check "plain" is "$(run --count 20 --mix "$mix" "$ENGINE")" \
	'.ok == 20 and .by_request["POST /v1/chat/completions"]["200"].count == 8'
check "streamed, IPv6" is "$(run --count 20 --stream --mix "$mix" "[::1]:$PORT")" '.ok == 20'
check "stream of HTTP/1.0" [ "$(curl -s0N "$ENGINE/v1/completions" -d '{"stream": true}' |
	grep -c '^data: ')" = 5 ]
check "4 MB" is "$(run --count 2 --post-size 4194304 --split-writes "$ENGINE")" '.ok == 2'
check "over 4 MB" is "$(run --count 2 --post-size 4194305 --expect-status 413 "$ENGINE")" '.ok == 2'
out=$(run --count 40 --concurrency 20 --expect-status 200,503 "$ENGINE")
check "full: 503" is "$out" '.errors == 0 and .status["503"].count > 0'

"$BUILD/checker" --count 10 "$SLOW" >/dev/null &
check "slots hold" soon '.running == 4 and .waiting == 6 and .kv == 1'
kill $!
check "a client that goes frees its slot" soon '.running == 0 and .waiting == 0 and .gone == 10'
check "and is remembered" soon '.most == 10'

sim kv=0.95 >/dev/null
check "forced KV use" grep -q '^vllm:kv_cache_usage_perc{.*} 0.9500$' <(curl -s "$ENGINE/metrics")
check "a wrong word is refused" is "$(sim kv=2)" .error
check "a service time that is none is refused" is "$(sim service-ms=0)" .error
sim service-ms=300 >/dev/null
check "another service time" is "$(run --count 1 "$ENGINE")" '.ok == 1 and .seconds >= 0.3'
sim service-ms=80 >/dev/null
check "KV use as it is" is "$(sim kv=auto)" '.kv == 0'
for page in html='<html>' garbage='{{{' 500=wished ok=num_gpu_blocks; do
	sim "metrics=${page%%=*}" >/dev/null
	check "metrics: ${page%%=*}" grep -qa "${page#*=}" <(curl -s "$ENGINE/metrics")
done
sim metrics=slow >/dev/null
check "metrics: slow" [ "$(curl -s -m 0.2 -w '%{http_code}' "$ENGINE/metrics")" = 000 ]

echo "# the load"
out=$("$BUILD/load" --steps 20:1 "$ENGINE" | tail -1)
check "what is offered is exact" is "$out" \
	'.total >= 1 and .offered == 20 and .errors == 0 and .status["200"].count == 20'

echo "# the keeper"
check "sound" is "$("$BUILD/keeper" --requests 2000 --depth 4 --lifetime 100 "$ECHO")" \
	'.served == 2000 and .errors == 0 and .connections > 64'
check "sound, whole, one at a time, IPv6" is \
	"$("$BUILD/keeper" --requests 500 --whole --body-max 5000 "[::1]:$((PORT + 18))")" '.served == 500'
port=$((PORT + 20))
for harm in none flipped flipped-up lost twice other-order stalled cut; do
	out=$("$BUILD/keeper" --requests 100 --connections 2 --timeout-ms 2000 127.0.0.1:$port 2>/dev/null)
	check "noticed: $harm" is "$out" '(.errors > 0) == ('"$port > $((PORT + 20))"')'
	((port++))
done
exit $failed
