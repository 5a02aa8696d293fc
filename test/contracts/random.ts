import { equal, match } from 'node:assert/strict';
import type { Random } from '../../src/ports/random.ts';
import type { ContractCase } from './contract.ts';

/** The contract of every `Random`. */
export function randomContract(create: () => Random): ContractCase[] {
  const many = Array.from({ length: 2000 });
  return [
    {
      name: 'makes ids that are DNS labels and begin with the prefix',
      run: async () => {
        const random = create();
        for (const id of many.map(() => random.id('sandbox'))) match(id, /^sandbox-[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
        equal(random.id('sandbox').length <= 63, true);
      },
    },
    {
      name: 'makes ids of one form, which is too long to be chosen',
      run: async () => {
        const random = create();
        const forms = new Set(many.map(() => random.id('s').slice(2).replaceAll(/[a-z0-9]/gu, 'x')));
        equal(forms.size, 1);
        for (const form of forms) equal(form.length >= 20, true);
      },
    },
    {
      name: 'never returns the same id or secret twice',
      run: async () => {
        const random = create();
        equal(new Set(many.map(() => random.id('s'))).size, many.length);
        equal(new Set(many.map(() => random.secret())).size, many.length);
      },
    },
    {
      name: 'makes secrets of at least 256 bits that are valid in URLs and headers',
      run: async () => {
        const random = create();
        // 43 characters of an alphabet of 64 have 258 bits.
        for (const secret of many.map(() => random.secret())) match(secret, /^[A-Za-z0-9_-]{43,}$/);
      },
    },
  ];
}
