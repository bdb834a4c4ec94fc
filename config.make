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
