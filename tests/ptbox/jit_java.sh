#!/usr/bin/env bash
# Java, whose methods become machine code while it runs, with --jit: each branch that is decoded is one that the machine saw, what is
# missing lies at errors, and the hot method has its name, by -XX:+DumpPerfMapAtExit.
# timeout: 1500
source tests/common.bash
source tests/ptbox.bash
java=$(readlink -f "$(command -v jlink)")
if ! command -v javac >/dev/null || [ ! -d "${java%/bin/jlink}/jmods" ]; then
	skip 1 "no Java Development Kit"
	exit 0
fi
cat >"$tmp/Hot.java" <<'EOS'
public class Hot {
	static int hotLoop(int[] a, int n) {
		int s = 0;
		for (int i = 0; i < n; i++) {
			s = s * 31 + a[i % a.length];
			if ((s & 1) != 0)
				s ^= 0x55;
		}
		return s;
	}
	public static void main(String[] x) throws Exception {
		int[] a = {1, 2, 3, 5, 8, 13};
		int t = 0;
		for (int k = 0; k < 3000; k++)
			t ^= hotLoop(a, 2000);
		java.io.File done = new java.io.File("done");
		new java.io.File("go").createNewFile();
		while (!done.exists())
			for (int k = 0; k < 30; k++)
				t ^= hotLoop(a, 2000);
		System.out.println(t);
	}
}
EOS
javac -d "$host" "$tmp/Hot.java" || exit 1
mkdir -p "$host/rootfs/opt"
jlink --add-modules java.base --strip-debug --no-man-pages --no-header-files --output "$host/rootfs/opt/java" >"$tmp/log" 2>&1 || {
	fail "jlink: $(tail -n 1 "$tmp/log")"
	exit 1
}
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
/opt/java/bin/java -Xshare:off -Xmx64m -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -cp /host Hot >java.out 2>java.log &
pid=$!
until [ -e go ]; do
	usleep 20000
	kill -0 $pid || exit 1
done
mkfifo ctl ack
# It writes the names when it ends: recording lasts until then, tracing does not.
(
	usleep 30000
	echo disable >ctl
	head -n 1 ack
	touch done
) >control &
pt-capture --jit -m 1M,16M -e intel_pt/psb_period=1/u -p $pid --control fifo:ctl,ack -o java.ptc 2>java.err
echo $? >java.status
wait
rm -f ctl ack
cp /tmp/perf-*.map . 
exit 0
EOS
PTBOX_LIMIT=${PTBOX_LIMIT:-1200} box -c 1 -m 2000
cat "$out/java.err" "$out/control"
pieces java 1 "$out/java.ptc" u
lines() { "$PT_BIN/pt-decode" --text -F from,to "$1" 2>/dev/null | grep -vc '^#'; }
all=$(captured_truth 0 "$out/java.ptc" u | wc -l)
decoded=$(lines "$out/java.ptc")
check "$decoded of $all branches" test "$decoded" -gt $((all * 9 / 10))
"$PT_BIN/pt-decode" -q "$out/java.ptc" 2>/dev/null | "$PT_BIN/pt-load" -q "$tmp/java.db"
named=$(sqlite3 "$tmp/java.db" "SELECT count(*) FROM branches WHERE from_symbol LIKE '%hotLoop%'")
check "$named branches of the method by its name" test "$named" -gt $((all / 4))
