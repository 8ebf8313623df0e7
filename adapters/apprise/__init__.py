"""Messages to chats, pagers and the like by one URL each: `sending` starts a process in which `child` runs Apprise."""
