# visible.awk EXPECTED TEXT: prints the branches of TEXT (pt-decode --text -F from,to) without those that a
# list of libipt's runs cannot show: a taken jump to the very next instruction, and the branch to an address
# without code.
function number(hex,    i, v) {
	for (i = 1; i <= length(hex); i++)
		v = v * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
	return v
}
FNR == NR { expected[n++] = $0; next }
/^#/ { next }
$0 != expected[at] && $1 != "0" && number($2) > number($1) && number($2) - number($1) <= 15 { next }
$0 != expected[at] && system("grep -q '^# error .* ip " $2 " no code' " FILENAME) == 0 { next }
{ at++; print }
