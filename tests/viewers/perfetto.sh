# timeout: 120
# Perfetto's own definitions of its format read what pt-query writes: protoc decodes every field by its name. The definitions are those of
# Debian sid's source package, or of the file $PERFETTO_TRACE_PROTO (protos/perfetto/trace/perfetto_trace.proto of its sources).
source tests/common.bash
proto=${PERFETTO_TRACE_PROTO:-}
cache=$caches/pt-perfetto
# The archive's mirror does not have every source all the time.
from_debian() {
	local mirror options
	# shellcheck disable=SC2016
	mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' 2>/dev/null | awk '$2 ~ /^[a-z]+$/ { print $1; exit }')
	[ -n "$mirror" ] || return 1
	mkdir -p "$tmp/apt/lists/partial" "$tmp/apt/cache/archives/partial" "$tmp/apt/src"
	printf 'Types: deb-src\nURIs: %s\nSuites: sid\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' "$mirror" >"$tmp/apt/list.sources"
	options=(-q -o "Dir::Etc::sourcelist=$tmp/apt/list.sources" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$tmp/apt/lists"
		-o "Dir::Cache=$tmp/apt/cache" -o APT::Sandbox::User=root)
	apt-get "${options[@]}" update >/dev/null 2>&1
	(cd "$tmp/apt/src" && timeout 100 apt-get "${options[@]}" source --download-only perfetto) >/dev/null 2>&1
	tar -xzOf "$tmp"/apt/src/perfetto_*.orig.tar.* --wildcards '*/protos/perfetto/trace/perfetto_trace.proto' >"$tmp/perfetto_trace.proto" 2>/dev/null
	[ -s "$tmp/perfetto_trace.proto" ] && mkdir -p "$cache" && cp "$tmp/perfetto_trace.proto" "$cache/"
}
[ -n "$proto" ] || { [ -s "$cache/perfetto_trace.proto" ] || from_debian; } && proto=${proto:-$cache/perfetto_trace.proto}
if ! command -v protoc >/dev/null || [ ! -s "$proto" ]; then
	skip 4 "no protoc, or Perfetto's definitions are not to be had: PERFETTO_TRACE_PROTO=FILE names them"
	exit
fi
"$PT_BUILD/tests/tools/mkvmrecords" --exits 1500 --seed 9 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/vm.db" || fail "load"
"$PT_BIN/pt-query" "$tmp/vm.db" -f perfetto -o "$tmp/x.pftrace"
succeeded $? "pt-query -f perfetto"
protoc --decode=perfetto.protos.Trace --proto_path="$(dirname "$proto")" "$proto" <"$tmp/x.pftrace" >"$tmp/text" 2>"$tmp/err"
succeeded $? "protoc decodes it: $(tail -n 1 "$tmp/err")"
check "every field has a name" test "$(grep -cE '^ *[0-9]+(:| \{)' "$tmp/text")" = 0 -a -s "$tmp/text"
python3 tests/cli/perfetto_reader.py "$tmp/x.pftrace" >"$tmp/read"
same "as many begins, marks and values as the test's reader finds" \
	<(for kind in slice mark count track; do grep -c "^$kind" "$tmp/read"; done) \
	<(for kind in TYPE_SLICE_BEGIN TYPE_INSTANT TYPE_COUNTER 'track_descriptor {'; do grep -c -- "$kind" "$tmp/text"; done)
