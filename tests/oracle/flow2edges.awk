# Reads a reference flow of ../shared/traces (its FORMAT.md) and prints the taken branches, "from to" a line,
# as pt-decode --text -F from,to does: 0 where tracing began or stopped.
function value(name,    i) {
	for (i = 3; i <= NF; i++)
		if (index($i, name "=") == 1)
			return substr($i, length(name) + 2)
	return "0"
}
$1 == "s" || $1 == "x" || $1 == "z" { have = 0; begin = "" }
# Tracing began somewhere: said when code is executed there, not when there is none.
begin && ($1 == "r" || $1 == "e" && /abled|async/) { print 0, begin; begin = "" }
$1 == "r" {
	if (have && $2 != end)
		print last, $2
	have = 1
	last = $3
	end = $4
}
$1 == "e" && / status/ { next }
$1 == "e" && $3 == "enabled" { begin = value("ip"); have = 0 }
$1 == "e" && $3 == "disabled" { if (have) print last, value("ip"); have = 0 }
$1 == "e" && $3 == "async-disabled" {
	if (have && end != value("at"))
		print last, value("at")
	print value("at"), value("ip")
	have = 0
}
$1 == "e" && $3 == "async-branch" {
	if (have && end != value("from"))
		print last, value("from")
	print value("from"), value("to")
	have = 0
}
