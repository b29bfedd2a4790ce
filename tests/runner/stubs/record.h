/* What a stub was called with: a line for each call, with the names of its arguments in the manual's order. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char lines[8192], told[64];

static void record(const char *format, ...)
{
	size_t used = strlen(lines);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(lines + used, sizeof lines - used, format, arguments);
	va_end(arguments);
	strncat(lines, "\n", sizeof lines - strlen(lines) - 1);
}

/* Moves the lines to a buffer. */
void stub_take(char *to, size_t room)
{
	snprintf(to, room, "%s", lines);
	*lines = 0;
}

/* The next call that can answer so does. */
void stub_tell(const char *answer)
{
	snprintf(told, sizeof told, "%s", answer);
}

/* Whether an answer was asked for, and not given. */
static int is_told(const char *answer)
{
	int is = strcmp(told, answer) == 0;
	if (is)
		*told = 0;
	return is;
}
