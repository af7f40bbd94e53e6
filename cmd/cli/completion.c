/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/cli/completion.c - scripts that complete commands, their verbs and their options; other words
 * are names of files. */
#include "cmd/cli/cli.h"
#include "cmd/cli/flags.h"
#include "cmd/cli/manual.h"
#include "cmd/cli/topics.h"
#include "cmd/cli/verbs.h"

#include <stdio.h>
#include <string.h>

static void print_flags(const wf_cmd *cmd)
{
    wf_flag_list list;

    wf_flags_of(cmd, &list);
    for (size_t i = 0; i < list.n; i++) {
        printf("--%s ", list.at[i].name);
        if (list.at[i].letter)
            printf("-%c ", list.at[i].letter);
    }
    printf("--help");
}

static void print_commands(void)
{
    const wf_cmd *cmd;

    for (size_t i = 0; (cmd = wf_cmd_at(i)); i++)
        printf("%s%s", i ? " " : "", cmd->name);
}

/* What may stand behind the command: its verbs, or what `weft help` explains. */
static void print_words(const wf_cmd *cmd)
{
    char verb[WF_VERB];
    const char *topic;

    for (size_t i = 0; wf_verb_at(cmd, i, verb); i++)
        printf("%s%s", i ? " " : "", verb);
    if (strcmp(cmd->name, "help") != 0)
        return;
    print_commands();
    for (size_t i = 0; (topic = wf_topic_at(i)); i++)
        printf(" %s", topic);
    printf(" operators");
}

/* Sets `flags` and `verbs` by the command, in the language that both shells share. */
static void print_cases(const char *command)
{
    const wf_cmd *cmd;

    printf("    case %s in\n", command);
    for (size_t i = 0; (cmd = wf_cmd_at(i)); i++) {
        printf("    %s) flags=\"", cmd->name);
        print_flags(cmd);
        printf("\" verbs=\"");
        print_words(cmd);
        printf("\" ;;\n");
    }
    printf("    esac\n");
}

static void print_bash(void)
{
    printf("# Completion of weft for bash; made from its table of commands.\n"
           "_weft() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} flags= verbs=\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        COMPREPLY=($(compgen -W \"");
    print_commands();
    printf("\" -- \"$cur\"))\n"
           "        return\n"
           "    fi\n");
    print_cases("${COMP_WORDS[1]}");
    printf("    if [[ $cur == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n"
           "    elif [ \"$COMP_CWORD\" -eq 2 ]; then\n"
           "        COMPREPLY=($(compgen -W \"$verbs\" -- \"$cur\"))\n"
           "    fi\n"
           "}\n"
           "complete -o default -F _weft weft\n");
}

/* The text of a help line between single quotes. */
static void print_quoted(const char *text)
{
    for (; *text; text++)
        if (*text == '\'')
            printf("'\\''");
        else
            putchar(*text);
}

static void print_zsh(void)
{
    const wf_cmd *cmd;

    printf("#compdef weft\n"
           "# Completion of weft for zsh; made from its table of commands.\n"
           "_weft() {\n"
           "    local -a commands reply\n"
           "    commands=(\n");
    for (size_t i = 0; (cmd = wf_cmd_at(i)); i++) {
        printf("        '%s:", cmd->name);
        print_quoted(cmd->help);
        printf("'\n");
    }
    printf("    )\n"
           "    if (( CURRENT == 2 )); then\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    _weft_table \"${words[2]}\"\n"
           "    if [[ ${words[CURRENT]} == -* ]]; then\n"
           "        compadd -- ${=reply[1]}\n"
           "    elif (( CURRENT == 3 )) && [[ -n ${reply[2]} ]]; then\n"
           "        compadd -- ${=reply[2]}\n"
           "    else\n"
           "        _files\n"
           "    fi\n"
           "}\n"
           "_weft_table() {\n"
           "    local flags= verbs=\n");
    print_cases("\"$1\"");
    printf("    reply=(\"$flags\" \"$verbs\")\n"
           "}\n"
           "_weft \"$@\"\n");
}

wf_status wf_completion_print(const char *shell, wf_err *err)
{
    if (strcmp(shell, "bash") == 0)
        print_bash();
    else if (strcmp(shell, "zsh") == 0)
        print_zsh();
    else
        return wf_fail(err, WF_USAGE, "it is bash or zsh", "weft knows no shell \"%.32s\"", shell);
    return WF_OK;
}
