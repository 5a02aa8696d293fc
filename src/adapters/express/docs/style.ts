export const contentSecurityPolicy = '';
