# Writes the gateway's configuration from UCI sections. Sourced after /lib/functions.sh and config_load.

# A TOML string.
gateway_quote() {
	local text=$1
	text=$(printf '%s' "$text" | tr -d '\000-\037\177' | sed 's/\\/\\\\/g; s/"/\\"/g')
	printf '"%s"' "$text"
}

gateway_item() {
	[ -z "$GATEWAY_ITEMS" ] || GATEWAY_ITEMS="$GATEWAY_ITEMS, "
	GATEWAY_ITEMS="$GATEWAY_ITEMS$(gateway_quote "$1")"
}

# gateway_array SECTION LIST KEY: nothing without items.
gateway_array() {
	GATEWAY_ITEMS=
	config_list_foreach "$1" "$2" gateway_item
	[ -z "$GATEWAY_ITEMS" ] || printf '%s = [%s]\n' "$3" "$GATEWAY_ITEMS"
}

# gateway_text SECTION OPTION: nothing without a value.
gateway_text() {
	local value
	config_get value "$1" "$2"
	[ -z "$value" ] || printf '%s = %s\n' "$2" "$(gateway_quote "$value")"
}

# gateway_number SECTION OPTION: nothing unless the value is a number.
gateway_number() {
	local value
	config_get value "$1" "$2"
	case $value in
		'' | *[!0-9]*) ;;
		*) printf '%s = %s\n' "$2" "$value" ;;
	esac
}

gateway_of_peer() {
	printf '\n[peer.%s]\n' "$(gateway_quote "$1")"
	gateway_text "$1" public_key
	gateway_text "$1" preshared_key_file
	gateway_text "$1" group
	gateway_number "$1" priority
	gateway_array "$1" allowed allowed
	gateway_array "$1" endpoint endpoints
}

gateway_of_path() {
	printf '\n[path.%s]\n' "$(gateway_quote "$1")"
	gateway_text "$1" interface
	gateway_text "$1" source
	gateway_text "$1" policy
	gateway_text "$1" cap
	gateway_number "$1" reset_day
	gateway_text "$1" at_cap
	gateway_text "$1" max_rate
}

gateway_of_class() {
	local dscp port prefix match=
	config_get dscp "$1" dscp
	config_get port "$1" port
	config_get prefix "$1" prefix
	[ -z "$dscp" ] || match="dscp = $(gateway_quote "$dscp")"
	[ -z "$port" ] || match="${match:+$match, }port = $(gateway_quote "$port")"
	[ -z "$prefix" ] || match="${match:+$match, }prefix = $(gateway_quote "$prefix")"
	printf '\n[class.%s]\nmatch = { %s }\n' "$(gateway_quote "$1")" "$match"
	gateway_text "$1" mode
	gateway_text "$1" path
}

# The configuration, to standard output.
gateway_toml() {
	local protect
	printf '# Made from /etc/config/anabranch-gateway: a change here is lost.\n[gateway]\n'
	gateway_text gateway interface
	gateway_array gateway address addresses
	gateway_text gateway private_key_file
	gateway_text gateway state_directory
	gateway_array gateway listen listen
	config_get_bool protect gateway protect 0
	[ "$protect" -eq 0 ] || printf 'protect = true\n'
	config_foreach gateway_of_peer peer
	config_foreach gateway_of_path path
	config_foreach gateway_of_class class
}
