#!/usr/bin/env bash
# Kernel and user space of the whole emulated PC, and of a program alone: all branches are those that the machine saw.
# timeout: 1200
source tests/common.bash
source tests/ptbox.bash
workload
programs ls
cat >"$host/run.sh" <<'EOS'
#!/bin/sh
cd /host/out || exit 1
pt-capture -o 01.ptc -m ,32M -a -e cyc -- work 1 2>01.err || exit 1
pt-capture -o 02.ptc -m ,16M -- /usr/bin/ls -la / >02.out 2>02.err || exit 1
pt-capture -o 03.ptc -m ,16M -k -- /usr/bin/ls -la / >03.out 2>03.err || exit 1
EOS
box -c 2
exact 2 "kernel and user space" "$out"/*.ptc
