# timeout: 200
# pt-load clickhouse:// and a server in trouble: its disk is full and gets room again, or does not; it answers nothing. And with TLS.
source tests/common.bash
source tests/clickhouse.bash
if ! clickhouse_found; then
	skip 1 "no clickhouse-server here, or pt-load is built without libcurl"
	exit
fi
trap 'clickhouse_end; finish' EXIT
"$PT_BUILD/tests/tools/mkvmrecords" --exits 1000 --vcpus 3 --seed 5 >"$tmp/s" 2>/dev/null || fail mkvmrecords
"$PT_BIN/pt-load" -q "$tmp/db" "$tmp/s"
exits=$(sqlite3 "$tmp/db" 'SELECT count(*) FROM vmexits')

# A disk of 48 MB, 47 of them taken by others until a file appears.
clickhouse_make full
if unshare -rm sh -c "mount -t tmpfs -o size=48m none '$tmp/full/data'" 2>/dev/null; then
	# shellcheck disable=SC2016 # that shell's
	(cd "$tmp/full" && exec unshare -rm --kill-child sh -c 'mount -t tmpfs -o size=48m none data && mkdir data/others &&
		{ dd if=/dev/zero of=data/others/file bs=1M count=60 2>/dev/null; truncate -s -400K data/others/file
			while [ ! -e room ]; do sleep 0.1; done; rm -r data/others; } &
		until [ -e "$1/full/data/others/file" ]; do sleep 0.1; done; sleep 2
		exec clickhouse-server --config-file=config.xml >>out 2>&1' sh "$tmp") &
	clickhouse_pid[full]=$!
	wait_for clickhouse_answers full
	url=clickhouse://127.0.0.1:${clickhouse_port[full]}/pt
	"$PT_BIN/pt-load" -q --timeout 2 "$url" "$tmp/s" 2>"$tmp/err"
	check "a full disk: 1" test $? -eq 1
	check "a full disk: says so: $(cat "$tmp/err")" grep -qiE 'space.*given up after' "$tmp/err"
	check "a full disk: nothing is there" test "$(ask full 'SELECT count() FROM pt.vmexits' 2>&1 | grep -cxE '[1-9][0-9]*')" = 0
	"$PT_BIN/pt-load" --timeout 100 "$url" "$tmp/s" 2>"$tmp/err" &
	loader=$!
	wait_for grep -q 'is in trouble' "$tmp/err"
	: >"$tmp/full/room"
	wait $loader
	succeeded $? "there is room again: it is loaded: $(cat "$tmp/err")"
	check "there is room again: all is there" test "$(ask full 'SELECT count() FROM pt.vmexits')" = "$exits"
	clickhouse_kill full
else
	skip 5 "this machine lets nobody mount a small disk"
fi

# One that takes connections, and never answers.
read -r silent < <(free_ports 1)
python3 -c 'import socket, sys, time
s = socket.socket(); s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen(); time.sleep(60)' "$silent" &
silent_pid=$!
wait_for bash -c "exec 3<>/dev/tcp/127.0.0.1/$silent" 2>"$tmp/err"
SECONDS=0
"$PT_BIN/pt-load" -q --timeout 2 "clickhouse://127.0.0.1:$silent/pt" "$tmp/s" 2>"$tmp/err"
check "no answer: 1" test $? -eq 1
check "no answer: it gives up: $(cat "$tmp/err")" grep -q 'given up after' "$tmp/err"
check "no answer: in time ($SECONDS s)" test $SECONDS -lt 20
"$PT_BIN/pt-query" --timeout 1 "clickhouse://127.0.0.1:$silent/pt" summary 2>"$tmp/err"
check "pt-query, no answer: 1" test $? -eq 1
kill $silent_pid
wait $silent_pid 2>/dev/null

# TLS, with a certificate of our own.
if command -v openssl >/dev/null && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
	-keyout "$tmp/key.pem" -out "$tmp/cert.pem" 2>"$tmp/err"; then
	clickhouse_make tls
	read -r https < <(free_ports 1)
	sed -i "s#<http_port>#<https_port>$https</https_port><openSSL><server><certificateFile>$tmp/cert.pem</certificateFile><privateKeyFile>$tmp/key.pem</privateKeyFile><verificationMode>none</verificationMode></server></openSSL><http_port>#" "$tmp/tls/config.xml"
	clickhouse_start tls
	url=clickhouses://127.0.0.1:$https/pt
	"$PT_BIN/pt-load" -q --timeout 5 "$url" "$tmp/s" 2>"$tmp/err"
	check "a certificate that nobody trusts: 1" test $? -eq 1
	check "a certificate that nobody trusts: says so: $(cat "$tmp/err")" grep -qi 'certificate' "$tmp/err"
	check "TLS: loaded" env SSL_CERT_FILE="$tmp/cert.pem" "$PT_BIN/pt-load" -q "$url" "$tmp/s"
	check "TLS: asked" test "$(SSL_CERT_FILE=$tmp/cert.pem "$PT_BIN/pt-query" "$url" -f tsv --sql 'SELECT count() FROM vmexits' | tail -n 1)" = "$exits"
	clickhouse_kill tls
else
	skip 4 "no openssl here to make a certificate"
fi
clickhouse_end
