# completion.bash - bash completion for pt-capture, pt-decode, pt-load and pt-query; `make install` puts it where bash-completion finds
# it. What can be completed is asked of the programs themselves, so it is what they know.
# shellcheck shell=bash

# The options that PROGRAM [SUBCOMMAND] --help lists, a line each.
_pt_options() {
	"$@" --help 2>/dev/null </dev/null | grep -oE '(^|[ ,;|[])--?[a-zA-Z][-a-z0-9]*' | grep -oE -- '--?[a-zA-Z][-a-z0-9]*' | sort -u
}

# _pt_from WORDS: candidates that begin with what was typed
_pt_from() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$_pt_word")
}

_pt_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -f -- "$_pt_word")
}

# The n-th word behind the program that is no option and no option's value. _pt_valued: the options that take one.
_pt_plain() {
	local i skip=0 n=$1
	for ((i = 1; i < COMP_CWORD; i++)); do
		if ((skip)); then
			skip=0
		elif [[ " $_pt_valued " == *" ${COMP_WORDS[i]} "* ]]; then
			skip=1
		elif [[ ${COMP_WORDS[i]} != -* ]] && ((n-- == 1)); then
			printf '%s\n' "${COMP_WORDS[i]}"
			return
		fi
	done
}

_pt_capture() {
	local _pt_word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} sub="" i
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == -- ]] && _pt_files && return
	done
	case ${COMP_WORDS[1]} in info | import | export | merge | check | trim) ((COMP_CWORD > 1)) && sub=${COMP_WORDS[1]} ;; esac
	case $before in
	--engine) _pt_from "auto perf step single-step" ;;
	--sample-event) _pt_from "cycles instructions branches branch-misses cache-misses cpu-clock page-faults context-switches" ;;
	--vm) _pt_from "all list $("$1" --vm list 2>/dev/null | awk '{ print $1, $2 }')" ;;
	-p | --pid | -t | --tid) _pt_from "$(cd /proc && printf '%s ' [0-9]*)" ;;
	*)
		if [[ $_pt_word == -* ]]; then
			_pt_from "$(_pt_options "$1" ${sub:+"$sub"}) --"
		elif ((COMP_CWORD == 1)); then
			_pt_from "check info import export merge trim"
		else
			_pt_files
		fi
		;;
	esac
}

_pt_decode() {
	local _pt_word=${COMP_WORDS[COMP_CWORD]} sub="" list=""
	((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} == vm-clock ]] && sub=vm-clock
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	-F | --fields)
		[[ $_pt_word == *,* ]] && list=${_pt_word%,*},
		compopt -o nospace 2>/dev/null
		_pt_from "$(printf "$list%s " tid pid comm cpu tsc tsc_lo tsc_hi class kind from to insns)"
		;;
	*)
		if [[ $_pt_word == -* ]]; then
			_pt_from "$(_pt_options "$1" ${sub:+"$sub"})"
		else
			_pt_files
			((COMP_CWORD > 1)) || mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W vm-clock -- "$_pt_word")
		fi
		;;
	esac
}

_pt_load() {
	local _pt_word=${COMP_WORDS[COMP_CWORD]}
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	--name | --timeout | --lease) COMPREPLY=() ;;
	--schema) _pt_from "plain replicated distributed:" ;;
	*)
		if [[ $_pt_word == -* ]]; then
			_pt_from "$(_pt_options "$1")"
		else
			_pt_files
			((COMP_CWORD > 1)) || mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W spool -- "$_pt_word")
		fi
		;;
	esac
}

# The database: the first --db, else the first plain word
_pt_db() {
	local i
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i - 1]} != --db ]] || { echo "${COMP_WORDS[i]}" && return; }
	done
	_pt_plain 1
}

_pt_query() {
	local _pt_word=${COMP_WORDS[COMP_CWORD]} _pt_valued="-f --format -o --output -p --param -w --width --sql --file --queries --db --timeout --port" db name
	if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} == watch ]]; then
		if [[ $_pt_word == -* ]]; then _pt_from "$(_pt_options "$1" watch)"; else _pt_files; fi
		return
	fi
	db=$(_pt_db) name=$(_pt_plain 2)
	[[ $db == "$(_pt_plain 1)" ]] || name=$(_pt_plain 1)
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	-f | --format) _pt_from "table csv tsv json jsonl markdown prometheus folded speedscope pprof firefox lines html perfetto perf-sqlite sqlite" ;;
	-p | --param)
		[[ -n $name ]] || return
		compopt -o nospace 2>/dev/null
		_pt_from "$("$1" "$db" "$name" --print 2>/dev/null | sed -n 's/^-- :\([a-z_]*\) = .*/\1=/p')"
		;;
	-w | --width | --sql | --port) COMPREPLY=() ;;
	--file | --db | -o | --output) _pt_files ;;
	--queries)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$_pt_word")
		;;
	*)
		if [[ $_pt_word == -* ]]; then
			_pt_from "$(_pt_options "$1")"
		elif [[ -z $db ]]; then
			_pt_files
		elif [[ -z $name ]]; then
			_pt_from "report serve $("$1" "$db" 2>/dev/null | awk 'NF == 0 { exit } { print $1 }')"
		fi
		;;
	esac
}

complete -F _pt_capture pt-capture
complete -F _pt_decode pt-decode
complete -F _pt_load pt-load
complete -F _pt_query pt-query
