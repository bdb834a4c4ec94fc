# Sourced after "config", when nginx's Makefile is written: the operator
# console is made of its parts whenever one of them is newer.

ngx_mcp_tasks_console_deps=

for ngx_mcp_tasks_part in embed.sh $ngx_mcp_tasks_console_parts; do
    ngx_mcp_tasks_console_deps="$ngx_mcp_tasks_console_deps \
        $ngx_addon_dir/console/$ngx_mcp_tasks_part"
done

cat << END                                                >> $NGX_MAKEFILE

$ngx_mcp_tasks_console_page: $ngx_mcp_tasks_console_deps
	sh $ngx_addon_dir/console/embed.sh $ngx_mcp_tasks_console_page

END

# The scripts that Redis runs, likewise.

ngx_mcp_tasks_redis_deps="$ngx_addon_dir/src/store/redis/embed.sh"

for ngx_mcp_tasks_part in "$ngx_addon_dir"/src/store/redis/lua/*.lua; do
    ngx_mcp_tasks_redis_deps="$ngx_mcp_tasks_redis_deps $ngx_mcp_tasks_part"
done

cat << END                                                >> $NGX_MAKEFILE

$ngx_mcp_tasks_redis_scripts: $ngx_mcp_tasks_redis_deps
	sh $ngx_addon_dir/src/store/redis/embed.sh $ngx_mcp_tasks_redis_scripts

END
